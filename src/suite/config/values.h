#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/yaml.h"

namespace tprimat::suite {

// A scalar as the type of its key; nothing if it is not one. Quoted scalars are strings only.
std::optional<double> parse_number(const YamlNode& node);  // finite; no NaN, no infinities
std::optional<int64_t> parse_whole(const YamlNode& node);  // 8 and 8.0e9, up to 9e15
std::optional<bool> parse_boolean(const YamlNode& node);   // true or false

// [a, b]; also  a, b  or  a b  in one text, as environment variables have it.
std::optional<std::vector<std::string>> parse_text_list(const YamlNode& node);

// The node at "a.b.c"; nullptr when there is none. A key of the tree may hold dots itself; the longest counts.
const YamlNode* find_path(const YamlNode& root, std::string_view path);

// The origin of "a.b.c", or of its nearest parent.
Origin find_origin(const YamlNode& root, std::string_view path);
std::string origin_of(const YamlNode& root, std::string_view path);  // for messages

// Whether "a.b.c" has a value that the user stated.
bool is_stated(const YamlNode& root, std::string_view path);

// Whether --set or the environment gave the value at "a.b.c". A problem that an override causes is not the file's.
bool is_overridden(const YamlNode& root, std::string_view path);

std::vector<std::string> split_path(std::string_view path);
std::string join_path(const std::string& above, const std::string& key);  // "a", "b" -> "a.b"

}  // namespace tprimat::suite
