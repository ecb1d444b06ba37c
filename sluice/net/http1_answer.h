// Heads and small answers of HTTP/1.1, written as text into one buffer that leaves in one piece.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::net {

// "Not Found" for 404; "Unknown" for a status that has no name.
[[nodiscard]] std::string_view ReasonPhrase(int status);

// "HTTP/1.1 404 Not Found\r\n".
void AppendStatusLine(int status, std::string* out);

// "name: value\r\n". Neither may hold CR or LF: they come from us or from a checked head.
void AppendField(std::string_view name, std::string_view value, std::string* out);
void AppendField(std::string_view name, std::size_t value, std::string* out);

// An answer whose body is there as a whole.
struct Answer {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string body;
  std::string more_fields;  // finished lines, each with its CRLF
  bool close = false;       // the connection ends with it: what the client means is not clear
};

// Head and body. `without_body` is for HEAD: the same head, Content-Length included.
void AppendAnswer(const Answer& answer, bool keep_alive, bool without_body, std::string* out);

// An application/problem+json body (RFC 9457) without a type of its own.
[[nodiscard]] Answer ProblemAnswer(int status, std::string_view detail);

// The text as a JSON string, with its quotes or without. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);
void AppendJsonText(std::string_view text, std::string* out);

void AppendNumber(std::size_t value, std::string* out);

}  // namespace sluice::net
