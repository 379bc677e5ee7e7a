#include "base/gzip.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <string>

#include "base/files.h"

namespace tprimat {
namespace {

std::string unpack(const std::string& file) {
  const auto path = std::filesystem::temp_directory_path() / ("tprimat_gzip_" + std::to_string(::getpid()));
  write_file_atomically(path, file);
  std::string text;
  char piece[65536];
  gzFile reader = ::gzopen(path.c_str(), "rb");
  EXPECT_FALSE(::gzdirect(reader)) << "it is a gzip file";
  for (int bytes = 0; (bytes = ::gzread(reader, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(bytes));
  EXPECT_EQ(::gzclose(reader), Z_OK);
  std::filesystem::remove(path);
  return text;
}

TEST(Gzip, UnpacksToTheSameBytes) {
  std::string incompressible;
  for (uint32_t i = 0, x = 1; i < 3'500'000; ++i)
    incompressible += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  for (const std::string& text : {std::string(), std::string("a"), std::string(1 << 20, 'b'), incompressible}) {
    const std::string file = gzip(text);
    EXPECT_TRUE(unpack(file) == text) << text.size() << " bytes";
    EXPECT_EQ(gzip(text), file) << "no time stands in it";
    EXPECT_TRUE(gunzip(file, 10'000'000) == text) << text.size() << " bytes";
  }
  EXPECT_LT(gzip(std::string(1 << 20, 'b')).size(), 10'000u);
}

TEST(Gzip, WhatIsNoWholeFileHasNoContent) {
  const std::string file = gzip("some text");
  EXPECT_EQ(gunzip(file, 9), "some text");
  EXPECT_FALSE(gunzip(file, 8));
  EXPECT_FALSE(gunzip("", 100));
  EXPECT_FALSE(gunzip("no gzip file", 100));
  EXPECT_FALSE(gunzip(file + "x", 100));
  for (size_t length = 0; length < file.size(); ++length) EXPECT_FALSE(gunzip(file.substr(0, length), 100)) << length;
}

}  // namespace
}  // namespace tprimat
