#include "sluice/net/http1_body.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::net {
namespace {

using Kind = BodyFraming::Kind;

struct Decoded {
  std::string content;
  std::size_t consumed = 0;
  BodyDecoder::State state = BodyDecoder::State::kMore;
};

// Feeds `bytes` in pieces of `step`.
Decoded DecodeInSteps(BodyFraming framing, std::string bytes, std::size_t step) {
  BodyDecoder decoder;
  decoder.Start(framing);
  Decoded result;
  while (result.consumed < bytes.size() && decoder.state() == BodyDecoder::State::kMore) {
    const std::size_t size = std::min(step, bytes.size() - result.consumed);
    const BodyDecoder::Step done = decoder.Decode(bytes.data() + result.consumed, size);
    result.content.append(bytes.data() + result.consumed, done.payload);
    result.consumed += done.consumed;
  }
  result.state = decoder.state();
  return result;
}

TEST(BodyDecoderTest, TakesChunksApartHoweverTheyArrive) {
  const std::string body =
      "4\r\nwiki\r\n5;a=\"b\"\r\npedia\r\n00A\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n";
  for (std::size_t step = 1; step <= body.size() + 1; ++step) {
    const Decoded got = DecodeInSteps({Kind::kChunked}, body + "GET /", step);
    EXPECT_EQ(got.content, "wikipedia0123456789");
    EXPECT_EQ(got.consumed, body.size());
    EXPECT_EQ(got.state, BodyDecoder::State::kDone);
  }
}

TEST(BodyDecoderTest, LeavesTheNextMessageAlone) {
  const Decoded got = DecodeInSteps({Kind::kLength, 3}, "abcGET /", 100);
  EXPECT_EQ(got.content, "abc");
  EXPECT_EQ(got.consumed, 3U);
  EXPECT_EQ(got.state, BodyDecoder::State::kDone);
}

TEST(BodyDecoderTest, RefusesChunksOutOfForm) {
  const std::string bodies[] = {
      "\r\n",
      "g\r\n",
      "-1\r\n",
      "0x4\r\nwiki\r\n",
      " 4\r\nwiki\r\n",
      "4 \r\nwiki\r\n",
      "4\nwiki\n0\n\n",
      "4\r\nwikiX",
      "4\r\nwiki\n",
      "4\r\nwiki\rX",
      "4\rX",
      "4;a\nwiki",
      "4;\x01\r\n",
      "1000000000000000\r\n",
      "0\r\n\n",
      "0\r\nX: y\n",
      "0\r\n: y\r\n",
      "0\r\nX\r\n",
      "0\r\nX : y\r\n",
      "0\r\nX: y\r\n z\r\n",
      "0\r\nX: \x01\r\n",
      "0\r\nX: a\rb",
      "0\r\n\rX",
      "4;" + std::string(1025, 'x') + "\r\n",
      "0\r\n" + std::string(20000, 'x'),
  };
  for (const std::string& body : bodies) {
    SCOPED_TRACE(testing::PrintToString(body.substr(0, 40)));
    EXPECT_EQ(DecodeInSteps({Kind::kChunked}, body, 1).state, BodyDecoder::State::kBad);
    EXPECT_EQ(DecodeInSteps({Kind::kChunked}, body, 1 << 20).state, BodyDecoder::State::kBad);
  }
}

TEST(BodyDecoderTest, KeepsTrailersForWhoeverWantsThem) {
  const std::string body = "1\r\na\r\n0\r\nX-Sum: 1 \r\ny:\r\n\r\n";
  for (std::size_t step = 1; step <= body.size(); ++step) {
    BodyDecoder decoder;
    decoder.Start({Kind::kChunked});
    std::string trailers;
    decoder.KeepTrailers(&trailers, 11);  // which they have, without the ends of their lines
    std::string bytes = body;
    for (std::size_t at = 0; at < bytes.size();) {
      at += decoder.Decode(bytes.data() + at, std::min(step, bytes.size() - at)).consumed;
    }
    EXPECT_TRUE(decoder.done());
    EXPECT_EQ(trailers, "X-Sum: 1 \r\ny:\r\n");
    decoder.Start({Kind::kChunked});
    decoder.KeepTrailers(&trailers, 10);
    (void)decoder.Decode(bytes.data(), (bytes = body).size());
    EXPECT_TRUE(decoder.bad());
    decoder.Start({Kind::kChunked});  // nobody wants these
    trailers.clear();
    (void)decoder.Decode(bytes.data(), (bytes = body).size());
    EXPECT_TRUE(decoder.done());
    EXPECT_EQ(trailers, "");
  }
}

TEST(BodyDecoderTest, TheEndOfTheConnectionEndsOnlyABodyThatSaysNothingElse) {
  const struct {
    BodyFraming framing;
    BodyDecoder::State state;
  } rows[] = {
      {{Kind::kUntilClose}, BodyDecoder::State::kDone},
      {{Kind::kLength, 10}, BodyDecoder::State::kBad},
      {{Kind::kChunked}, BodyDecoder::State::kBad},
      {{Kind::kNone}, BodyDecoder::State::kDone},
  };
  for (const auto& row : rows) {
    BodyDecoder decoder;
    decoder.Start(row.framing);
    std::string bytes = "3\r\nabc\r\n";
    (void)decoder.Decode(bytes.data(), bytes.size());
    decoder.OnEndOfInput();
    EXPECT_EQ(decoder.state(), row.state);
  }
}

TEST(ChunkLineTest, WritesTheSizeInHexadecimal) {
  EXPECT_EQ(ChunkLine(1).view(), "1\r\n");
  EXPECT_EQ(ChunkLine(0xabc0).view(), "abc0\r\n");
  EXPECT_EQ(ChunkLine(~std::size_t{0}).view(), "ffffffffffffffff\r\n");
}

}  // namespace
}  // namespace sluice::net
