"""The checks of tools/ on small trees that break, and on ones that keep, each rule."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LAYERS = "base:\nalgorithm: base\nstore: algorithm base\nstore/redis:\nnet: base\n<boost/asio>: net\n"


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.write("tools/layers.txt", LAYERS)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def run_check(self, name, *options):
        done = subprocess.run([sys.executable, os.path.join(TOOLS, name), "--root", self.root, *options],
                              stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    def assert_passes(self, name):
        code, out = self.run_check(name)
        self.assertEqual(code, 0, out)

    def assert_complains(self, name, *parts):
        code, out = self.run_check(name)
        self.assertEqual(code, 1, out)
        for part in parts:
            self.assertIn(part, out)


class LayersTest(CheckTest):
    def test_arrows_that_are_listed_pass(self):
        self.write("sluice/store/a.h", '#include <vector>\n#include "sluice/algorithm/b.h"\n'
                   '#include "absl/status/status.h"\n'
                   '#include "sluice/store/internal/c.h"\n')
        self.write("sluice/store/redis/d.h", '#include "sluice/store/a.h"\n')
        self.write("sluice/net/e.h", "#include <boost/asio.hpp>\n")
        self.assert_passes("check_layers")

    def test_an_include_upwards_is_told_with_its_line(self):
        self.write("sluice/algorithm/a.h", '#pragma once\n#include "sluice/store/b.h"\n')
        self.assert_complains("check_layers", "sluice/algorithm/a.h:2: algorithm must not include sluice/store/b.h")

    def test_a_floor_inside_a_folder_is_closed_to_its_parent_and_its_siblings(self):
        self.write("sluice/store/a.h", '#include "sluice/store/redis/b.h"\n')
        self.write("sluice/store/memory/c.h", '#include "sluice/store/redis/b.h"\n')
        self.assert_complains("check_layers", "sluice/store/a.h:1", "sluice/store/memory/c.h:1")

    def test_what_is_internal_stays_in_its_folder(self):
        self.write("sluice/store/a.h", '#include "sluice/algorithm/internal/b.h"\n')
        self.assert_complains("check_layers", "is internal to sluice/algorithm/")

    def test_includes_are_written_from_the_root(self):
        self.write("sluice/store/a.cc", '#include "a.h"\n')
        self.assert_complains("check_layers", '"sluice/store/a.h"')

    def test_a_source_begins_with_its_own_header(self):
        self.write("tests/a.h", "")
        self.write("tests/a.cc", '// A.\n#include <vector>\n\n#include "tests/a.h"\n')
        self.assert_complains("check_layers", 'tests/a.cc:2: "tests/a.h" comes before all other includes')
        self.write("tests/a.cc", '// A.\n#include "tests/a.h"\n\n#include <vector>\n')
        self.assert_passes("check_layers")

    def test_outside_headers_are_kept_to_their_floors(self):
        self.write("sluice/store/a.h", "#include <boost/asio/ip/tcp.hpp>\n")
        self.assert_complains("check_layers", "store must not include <boost/asio/ip/tcp.hpp>")

    def test_a_folder_without_a_line_is_told(self):
        self.write("sluice/misc/a.h", "")
        self.assert_complains("check_layers", "sluice/misc/a.h:1")

    def test_cmake_dependencies_keep_the_same_arrows(self):
        self.write("sluice/store/CMakeLists.txt", "sluice_library(store\n  DEPS sluice::algorithm)\n")
        self.write("sluice/algorithm/CMakeLists.txt", "sluice_library(algorithm\n  DEPS sluice::store)\n")
        self.assert_complains("check_layers", "sluice/algorithm/CMakeLists.txt:2: algorithm must not depend on")

    def test_only_tests_may_use_the_libraries_of_tests(self):
        self.write("tests/vectors/CMakeLists.txt", "sluice_library(vectors)\n")
        self.write("sluice/store/CMakeLists.txt", "sluice_test(a_test SOURCES a_test.cc\n  DEPS sluice::vectors)\n")
        self.assert_passes("check_layers")
        self.write("sluice/store/CMakeLists.txt", "sluice_library(store\n  DEPS sluice::vectors)\n")
        self.assert_complains("check_layers", "sluice/store/CMakeLists.txt:2: no sluice_library(vectors)")

    def test_a_circle_can_not_be_written(self):
        self.write("tools/layers.txt", "base: net\nnet: base\n")
        self.assert_complains("check_layers", "tools/layers.txt:1: `net` has no line above")


class SizesTest(CheckTest):
    @staticmethod
    def function(lines, head="int F(int a)"):
        return head + " {\n" + "  ++a;\n" * (lines - 2) + "}\n"

    def test_seventy_lines_pass_and_seventy_one_do_not(self):
        self.write("a.cc", self.function(70))
        self.assert_passes("check_sizes")
        self.write("a.cc", "\n\n" + self.function(71))
        self.assert_complains("check_sizes", "a.cc:3: F has 71 lines")

    def test_functions_are_found_in_classes_behind_initialisers_and_braces_in_strings(self):
        body = "  ++a;\n" * 80
        self.write("a.h", 'namespace n {\nclass C : B {\n public:\n  C(int a = {}) : x_{a}, y_("{") {\n'
                   + body + "  }\n  int x_{1};\n};\n}\n")
        self.assert_complains("check_sizes", "a.h:4: C has 82 lines")

    def test_classes_tables_and_strings_are_no_functions(self):
        rows = "  1,\n" * 90
        self.write("a.h", "struct S {\n" + "  int a;\n" * 90 + "};\nint t[] = {\n" + rows + "};\n"
                   + 'auto s = R"(' + "{\n" * 90 + ')";\n')
        self.assert_passes("check_sizes")

    def test_a_file_of_more_than_700_lines_fails(self):
        self.write("a.h", "int a;\n" * 700)
        self.assert_passes("check_sizes")
        self.write("a.h", "int a;\n" * 701)
        self.assert_complains("check_sizes", "a.h:1: the file has 701 lines")

    def test_long_ones_are_noted(self):
        self.write("a.cc", self.function(41))
        self.assertIn("a.cc:1: note: F has 41 lines", self.run_check("check_sizes", "--notes")[1])


class WordsTest(CheckTest):
    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(TOOLS, "words.txt"), os.path.join(self.root, "tools"))

    def test_each_habit_is_found(self):
        for path, line in [
                ("sluice/base/a_test.cc", "GTEST_SKIP();"),
                ("tests/b_test.cc", "TEST(A, DISABLED_B) {}"),
                ("sluice/base/a_test.cc", "std::this_thread::sleep_for(1ms);"),
                ("sluice/store/a.cc", "auto now = std::chrono::steady_clock::now();"),
                ("sluice/net/a.cc", "throw std::runtime_error(x);"),
                ("sluice/rule/a.h", "void F(absl::string_view x);"),
                ("sluice/algorithm/a.cc", "double rate = 1;"),
                ("sluice/net/a.cc", "// TO" + "DO: finish"),
                ("sluice/net/a.cc", 'Open("/ho' + 'me/ann/rules.yaml");')]:
            with self.subTest(line):
                self.write(path, "\n" + line + "\n")
                self.assert_complains("check_words", f"{path}:2:")
                os.remove(os.path.join(self.root, path))

    def test_a_line_that_says_why_passes(self):
        self.write("sluice/store/a.cc", "steady_clock::now();  // NOLINT: a benchmark's\n// thrown away\n")
        self.write("sluice/store/a_bench.cc", "steady_clock::now();\n")
        self.assert_passes("check_words")


class BugCasesTest(CheckTest):
    def setUp(self):
        super().setUp()
        self.write("sluice/base/CMakeLists.txt", "sluice_test(a_test SOURCES a_test.cc)\n")
        self.write("sluice/base/a_test.cc", "TEST(A, Works) {}\nTEST_F(LongSuite,\n       Works) {}\n")
        self.write("sluice/base/b_test.cc", "TEST(B, IsNotBuilt) {}\n")

    def cases(self, *lines):
        self.write("tests/bug_cases.txt", "numbers: 1 2\ntopics: Redis store\n" + "\n".join(lines) + "\n")

    def test_a_complete_list_passes(self):
        self.cases("B01 A.Works, LongSuite.Works; waits: Redis store", "B02 waits: Redis store")
        self.assert_passes("check_bug_cases")

    def test_each_gap_is_told(self):
        for lines, complaint in [
                (["B01 A.Works"], "B02 has no line"),
                (["B01 A.Works", "B02 ?"], ":4: B02 has no test yet"),
                (["B01 A.Works", "B02"], ":4: expected"),
                (["B01 A.Works", "B02 A.Gone"], ":4: there is no test A.Gone"),
                (["B01 A.Works", "B02 B.IsNotBuilt"], ":4: there is no test B.IsNotBuilt"),
                (["B01 A.Works", "B02 waits: rain"], "`rain` is none"),
                (["B01 A.Works", "B02 A.Works", "B03 A.Works"], ":5: B03 is not among"),
                (["B01 A.Works", "B02 A.Works", "B02 A.Works"], ":5: B02 has a line already")]:
            with self.subTest(complaint):
                self.cases(*lines)
                self.assert_complains("check_bug_cases", complaint)


if __name__ == "__main__":
    unittest.main()
