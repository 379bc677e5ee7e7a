#include "model_files/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "base/files.h"
#include "unit/model_files/expect_error.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

using test::TemporaryFolder;

std::string make_file(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\1');
}

SafetensorsHeader parse_file(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "x.safetensors");
}

std::string refusal(const std::string& header, size_t data_bytes) {
  return test::error_of([&] { parse_file(make_file(header, data_bytes)); });
}

const std::string k_two_tensors =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]},)"
    R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}  )";

TEST(Safetensors, ReadsAHeader) {
  const SafetensorsHeader header = parse_file(make_file(k_two_tensors, 14));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors.at("a").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(header.tensors.at("b").begin, 8);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.data_begin, static_cast<int64_t>(8 + k_two_tensors.size()));
}

TEST(Safetensors, RefusesWhatContradictsItself) {
  const auto tensor = [](const std::string& entry) { return R"({"a":)" + entry + "}"; };
  const auto refused = [&](const std::string& entry, size_t bytes) { return refusal(tensor(entry), bytes); };
  const std::map<std::string, std::string> cases = {
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", "needs 8"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})", "begins at byte 4"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "a begin and an end"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,9]})", "a begin and an end"},
      {R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "not a size"},
      {R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", "not a size"},
      {R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]})", "impossible shape"},
      {R"({"dtype":"F32","shape":"2","data_offsets":[0,8]})", "not a list"},
      {R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})", "number format F4"},
      {R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})", "not a string"},
      {R"({"shape":[2],"data_offsets":[0,8]})", "has no dtype"},
      {R"([])", "not described by an object"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "8 bytes of data"}};
  for (const auto& [entry, words] : cases)
    EXPECT_NE(refused(entry, 8).find(words), std::string::npos) << entry << ": " << refused(entry, 8);
}

TEST(Safetensors, RefusesOverlapsGapsAndDuplicates) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_NE(refusal("{" + a + "," + a + "}", 4).find("'a' twice"), std::string::npos);
  EXPECT_NE(refusal("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6).find("'b' begins"),
            std::string::npos);
  EXPECT_NE(refusal("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})", 10).find("'b' begins"),
            std::string::npos);
  EXPECT_NE(refusal("{" + a + "}", 3).find("3 bytes of data"), std::string::npos);
  EXPECT_NE(refusal("{" + a + "}", 5).find("5 bytes of data"), std::string::npos);
}

TEST(Safetensors, RefusesImpossibleLengthsAndBrokenJson) {
  std::string huge = make_file("{}", 0);
  std::memset(huge.data(), 0xff, 8);
  EXPECT_ERROR_WITH("18446744073709551615 bytes", parse_file(huge));
  EXPECT_ERROR_WITH("too few", parse_file("1234567"));
  EXPECT_NE(refusal(" {}", 0).find("begin with '{'"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":", 0).find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":" + std::string(300, '[') + std::string(300, ']') + "}", 0).find("nested"),
            std::string::npos);
}

TEST(Safetensors, NoByteOfTheHeaderCanChangeUnseenAndMakeItReadElsewhere) {
  const std::string good = make_file(k_two_tensors, 14);
  const size_t header_end = 8 + k_two_tensors.size();
  for (size_t at = 0; at < header_end; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      try {  // refused, or a name, a format of the same size or a text is another: all within the file
        for (const auto& [name, tensor] : parse_file(bad).tensors) {
          EXPECT_LE(0, tensor.begin);
          EXPECT_LE(static_cast<size_t>(tensor.end) + header_end, bad.size());
        }
      } catch (const Error&) {
      }
    }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string good = make_file(k_two_tensors, 14);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(test::error_of([&] { parse_file(good.substr(0, length)); }), "") << length;
}

std::vector<float> ramp(const TensorShape& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 4.5f;
  return values;
}

TEST(Safetensors, WritesAndReadsEveryFormat) {
  const TemporaryFolder folder;
  const std::vector<TensorShape> tensors = {{"x", {3, 5}}, {"empty", {0, 4}}, {"one", {}}, {"y", {7}}};
  for (const NumberFormat format : {NumberFormat::f32, NumberFormat::f64, NumberFormat::f16, NumberFormat::bf16}) {
    const std::filesystem::path place = folder / std::string(enum_name(format));
    write_safetensors_folder({place, format}, tensors, ramp);
    const SafetensorsFolder read(place);
    EXPECT_EQ(read.names().size(), 4u);
    for (const TensorShape& tensor : tensors) {
      EXPECT_EQ(read.find(tensor.name)->shape, tensor.shape);
      EXPECT_EQ(read.read(tensor.name), ramp(tensor)) << enum_name(format);
    }
  }
}

TEST(Safetensors, ShardsByBytesAndReadsThemTogether) {
  const TemporaryFolder folder;
  const std::vector<TensorShape> tensors = {{"a", {10}}, {"b", {10}}, {"large", {100}}, {"c", {5}}};
  write_safetensors_folder({folder / "m", NumberFormat::f32, 80}, tensors, ramp);
  EXPECT_TRUE(std::filesystem::exists(folder / "m/model-00001-of-00003.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "m/model-00003-of-00003.safetensors"));
  const SafetensorsFolder read(folder / "m");
  for (const TensorShape& tensor : tensors) EXPECT_EQ(read.read(tensor.name), ramp(tensor));
  EXPECT_NE(read.file_of("large"), read.file_of("a"));
  EXPECT_EQ(read.file_of("b"), read.file_of("a"));
}

TEST(Safetensors, RefusesAnIndexThatLeavesTheFolderOrLies) {
  const TemporaryFolder folder;
  write_safetensors_folder({folder / "m", NumberFormat::f32, 40}, {{"a", {10}}, {"b", {10}}}, ramp);
  const std::string index = folder / "m/model.safetensors.index.json";
  const auto with = [&](const std::string& file, const std::string& tensor) {
    write_file_atomically(index, R"({"weight_map":{")" + tensor + R"(":")" + file + R"("}})");
    SafetensorsFolder read(folder / "m");
  };
  EXPECT_ERROR_WITH("not a file name", with("../m/model-00001-of-00002.safetensors", "a"));
  EXPECT_ERROR_WITH("no tensor 'z'", with("model-00001-of-00002.safetensors", "z"));
  EXPECT_ERROR_WITH("model-00009", with("model-00009-of-00002.safetensors", "a"));
  EXPECT_ERROR_WITH("neither", SafetensorsFolder(folder / "nothing"));
}

TEST(Safetensors, RefusesNumbersThatTheFormatCannotHold) {
  const TemporaryFolder folder;
  const auto large = [](const TensorShape&) { return std::vector<float>{1.0f, 70000.0f}; };
  const SafetensorsOutput output{folder / "m", NumberFormat::f16};
  EXPECT_ERROR_WITH("tensor 'a' holds 70000", write_safetensors_folder(output, {{"a", {2}}}, large));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "m"));
  const auto infinite = [](const TensorShape&) { return std::vector<float>{INFINITY, 1.0f}; };
  write_safetensors_folder(output, {{"a", {2}}}, infinite);
  EXPECT_EQ(SafetensorsFolder(folder / "m").read("a")[0], INFINITY);
}

TEST(Safetensors, AFailureLeavesNoPartOfAModel) {
  const TemporaryFolder folder;
  const auto failing = [](const TensorShape& tensor) {
    if (tensor.name == "b") throw Error(Problem{"no more", "", ""});
    return ramp(tensor);
  };
  EXPECT_ERROR_WITH(
      "no more", write_safetensors_folder({folder / "m", NumberFormat::f32, 40}, {{"a", {10}}, {"b", {10}}}, failing));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "m"));
}

TEST(Safetensors, DoesNotMixTwoModelsInOneFolder) {
  const TemporaryFolder folder;
  write_safetensors_folder({folder / "m"}, {{"a", {10}}}, ramp);
  EXPECT_ERROR_WITH("already", write_safetensors_folder({folder / "m"}, {{"a", {10}}}, ramp));
}

TEST(Safetensors, NamesATensorWhoseNumbersAreNoWeights) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "model.safetensors",
                        make_file(R"({"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8));
  EXPECT_ERROR_WITH("'ids' has the number format I64", SafetensorsFolder(folder.path()).read("ids"));
}

}  // namespace
}  // namespace tprimat::engine
