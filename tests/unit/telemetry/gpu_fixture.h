#pragma once

#include <cstdlib>
#include <string>

namespace tprimat {

// An environment variable for as long as it lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

// What the fake libraries lie about (tests/fakes/lies.h).
class Lies : public Setting {
 public:
  explicit Lies(const std::string& words) : Setting("FAKE_GPU_LIES", words) {}
};

}  // namespace tprimat
