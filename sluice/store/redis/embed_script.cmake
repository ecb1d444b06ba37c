# cmake -DPARTS="a.lua;b.lua" -DOUT=x.cc -P embed_script.cmake: the parts as one C++ text. Without
# comments and indentation, since the server keeps what it is sent.
# A raw literal for each part: compilers need not take one above 64 KB.
set(text "")
foreach(part IN LISTS PARTS)
  file(READ ${part} lua)
  string(REGEX REPLACE "(^|\n)[ ]*--[^\n]*" "\\1" lua "${lua}")
  string(REGEX REPLACE "\n[ ]+" "\n" lua "${lua}")
  string(REGEX REPLACE "\n\n+" "\n" lua "${lua}")
  string(APPEND text "R\"lua(${lua})lua\"\n")
endforeach()
file(WRITE ${OUT} "#include \"sluice/store/redis/script_call.h\"

namespace sluice::redis {

std::string_view ScriptSource() {
  static constexpr std::string_view kSource =
${text};
  return kSource;
}

}  // namespace sluice::redis
")
