#include "train/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace tprimat::engine {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Error cannot_write(const std::filesystem::path& path, int error) {
  const std::string hint = error == ENOSPC ? "free some space, or train without event files" : "";
  return Error(Problem{fmt::format("cannot write the event file: {}", std::strerror(error)), path.string(), hint},
               ExitStatus::work_failed);
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, double unix_time, std::optional<int64_t> resumed_at)
    : path_(folder / fmt::format("events.out.tfevents.{:010}.{}.{}.0", static_cast<int64_t>(unix_time), host_name(),
                                 ::getpid())) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw cannot_write(path_, error.value());
  stream_.open(path_, std::ios::binary | std::ios::trunc);
  append(make_version_record(unix_time));
  if (resumed_at) append(make_restart_record(*resumed_at, unix_time));
}

void EventFile::write_step(int64_t step, double unix_time, std::span<const EventScalar> scalars) {
  append(make_step_record(step, unix_time, scalars));
}

void EventFile::append(std::string_view record) {
  errno = 0;
  stream_ << record << std::flush;
  if (!stream_) throw cannot_write(path_, errno != 0 ? errno : EIO);
}

}  // namespace tprimat::engine
