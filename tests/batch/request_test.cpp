#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "batch/request.hpp"
#include "batch/response.hpp"
#include "catch.hpp"

using namespace quern;
using batch::InputFormat;

namespace {

batch::Request read(const std::string& text, InputFormat format) {
  batch::Line line;
  line.number = 1;
  line.text = text;
  line.n_bytes = text.size();
  return batch::read_request(line, format);
}

std::string code_of(const std::string& text, InputFormat format) {
  try {
    read(text, format);
  } catch (const batch::ItemError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.item_code();
  }
  return "";
}

std::string openai(const std::string& body, const std::string& url = "/v1/chat/completions") {
  return R"({"custom_id": "x", "method": "POST", "url": ")" + url + R"(", "body": )" + body + "}";
}

const std::string kMessages = R"("messages": [{"role": "user", "content": "hi"}])";

}  // namespace

TEST_CASE("a chat request with every field") {
  const batch::Request r = read(
      openai("{" + kMessages + R"(, "model": "m", "max_completion_tokens": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1,
      "seed": 3, "stop": ["a", "b"], "stop_token_ids": [4], "presence_penalty": 1, "frequency_penalty": -1, "repeat_penalty": 1.1,
      "logit_bias": {"5": -100, "6": 1.5}, "logprobs": true, "top_logprobs": 4, "n": 2, "stream": false, "user": "u", "store": null,
      "tools": [{"type": "function"}], "tool_choice": "auto", "chat_template_kwargs": {"enable_thinking": false}, "min_tokens": 2,
      "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "integer"}}}})"),
      InputFormat::openai);
  CHECK(r.endpoint == batch::Endpoint::chat);
  CHECK(r.messages.size() == 1);
  CHECK(r.messages[0].content.text == "hi");
  CHECK(r.max_tokens == 7);
  CHECK(r.min_tokens == 2);
  CHECK(r.sampling.temperature == 0.5);
  CHECK(r.sampling.top_k == 5);
  CHECK(r.sampling.seed == 3);
  CHECK(r.stops == std::vector<std::string>{"a", "b"});
  CHECK(r.stop_ids == std::vector<std::int32_t>{4});
  REQUIRE(r.sampling.logit_bias.size() == 2);
  CHECK(std::isinf(r.sampling.logit_bias[0].second));
  CHECK(r.logprobs);
  CHECK(r.top_logprobs == 4);
  CHECK(r.n == 2);
  CHECK(r.form == batch::FormKind::json_schema);
  CHECK(r.form_text == R"({"type":"integer"})");
  CHECK(r.tools_json == R"([{"type":"function"}])");
  CHECK(r.template_kwargs_json == R"({"enable_thinking":false})");
  CHECK(read(openai("{" + kMessages + R"(, "tools": [{}], "tool_choice": "none"})"), InputFormat::openai).tools_json.empty());
}

TEST_CASE("texts, ids and lists of them") {
  const auto prompts = [](const std::string& prompt) {
    return read(openai(R"({"prompt": )" + prompt + "}", "/v1/completions"), InputFormat::openai).prompts;
  };
  CHECK(prompts(R"("a")").size() == 1);
  CHECK(prompts(R"(["a", "b"])")[1].text == "b");
  CHECK(prompts("[1, 2]")[0].ids == std::vector<std::int32_t>{1, 2});
  CHECK(prompts("[[1], [2, 3]]")[1].ids == std::vector<std::int32_t>{2, 3});
  for (const char* prompt : {"[]", "[[]]", "5", "{}", "null", "[null]", "[-1]", "[1.5]", "[1, \"a\"]"})
    CHECK(code_of(openai(R"({"prompt": )" + std::string(prompt) + "}", "/v1/completions"), InputFormat::openai) == "invalid_request");
  CHECK(read(openai(R"({"input": "a", "encoding_format": "base64"})", "/v1/embeddings"), InputFormat::openai).base64);
}

TEST_CASE("simple lines") {
  CHECK(read("\"a\"", InputFormat::jsonl).prompts[0].text == "a");
  CHECK(read(R"({"prompt": "a", "system": "s", "temperature": 0})", InputFormat::jsonl).system == "s");
  CHECK(read(R"({"text": "a", "id": 5})", InputFormat::jsonl).prompts[0].text == "a");
  CHECK(read("{" + kMessages + "}", InputFormat::jsonl).endpoint == batch::Endpoint::chat);
  CHECK(read("any {text}", InputFormat::text).prompts[0].text == "any {text}");
  CHECK(code_of(R"({"prompt": "a", )" + kMessages + "}", InputFormat::jsonl) == "invalid_request");
  CHECK(code_of(R"({"prompt": "a", "n": 2})", InputFormat::jsonl) == "unsupported_field");
  CHECK(code_of(R"({"promt": "a"})", InputFormat::jsonl) == "invalid_request");
  CHECK(code_of("[1]", InputFormat::jsonl) == "invalid_request");
  CHECK(code_of("\xFF", InputFormat::text) == "invalid_utf8");
}

TEST_CASE("parts of text become one text") {
  const batch::Request r = read(openai(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
      {"type": "text", "text": "b"}]}, {"role": "assistant", "content": null, "tool_calls": []}]})"), InputFormat::openai);
  CHECK(r.messages[0].content.text == "a\nb");
  CHECK(r.messages.size() == 2);
}

TEST_CASE("output lines are strict JSON without control bytes") {
  batch::LineFacts facts;
  facts.number = 3;
  facts.key = 0xABCDEF;
  facts.custom_id = "id\x1b[2J\xC2\x9B\x7F";
  facts.model = "m";
  facts.format = InputFormat::openai;
  batch::GenerationResult result;
  result.choices.push_back({"text \x01\x7F\xC2\x85 \xE2\x80\xA8 \xF0\x9F\x98\x80", {1, 2}, "stop", 5, {}});
  for (const InputFormat format : {InputFormat::openai, InputFormat::jsonl, InputFormat::text}) {
    facts.format = format;
    for (const std::string& line : {batch::generation_line(facts, {}, result),
                                    batch::error_line(facts, batch::ItemError("code", "where", "what\n\x1b"))}) {
      CHECK(std::count(line.begin(), line.end(), '\n') == 1);
      CHECK(line.back() == '\n');
      for (std::size_t i = 0; i + 1 < line.size(); ++i) {
        const auto c = static_cast<unsigned char>(line[i]);
        CHECK((c >= 0x20 && c != 0x7F));
        CHECK_FALSE((c == 0xC2 && static_cast<unsigned char>(line[i + 1]) < 0xA0));
      }
      const auto json = nlohmann::json::parse(line);
      CHECK(json["custom_id"] == *facts.custom_id);
      CHECK(json["id"] == "batch_req_0000000000abcdef");
    }
  }
  batch::EmbeddingResult embedded;
  embedded.vectors = {{0.1F, -1.5F, 3.0e-38F}};
  facts.format = InputFormat::openai;
  batch::Request request;
  const auto floats = nlohmann::json::parse(batch::embedding_line(facts, request, embedded));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(floats["response"]["body"]["data"][0]["embedding"][i].get<float>() == embedded.vectors[0][i]);
  request.base64 = true;
  CHECK(batch::embedding_line(facts, request, embedded).find("\"zczMPQAAwL") != std::string::npos);
}
