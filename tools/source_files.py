"""The files of the project, for the checks: what git tracks, and what is new and not ignored."""

import os
import subprocess


def source_files(root):
    """Paths relative to `root`, sorted. Outside of a git work tree: all but build folders."""
    git = ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z",
           "--cached", "--others", "--exclude-standard"]
    if os.path.exists(os.path.join(root, ".git")):
        out = subprocess.run(git, check=True, stdout=subprocess.PIPE).stdout
        names = {os.fsdecode(name) for name in out.split(b"\0") if name}
        return sorted(n for n in names if os.path.isfile(os.path.join(root, n)))
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in (".git", "build", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def report(name, complaints, summary):
    """Prints all complaints, or one line that all is well; returns the exit code."""
    for complaint in complaints:
        print(complaint)
    if complaints:
        print(f"{name}: {len(complaints)} complaint{'s' if len(complaints) != 1 else ''}")
        return 1
    print(f"{name}: {summary}")
    return 0
