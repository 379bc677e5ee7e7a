#include "base/files.h"
#include "trace/chrome_trace.h"
#include "trace/trace.h"

namespace tprimat::logs {

Trace read_trace(std::string_view bytes, std::string_view where, TraceContent content) {
  return read_chrome_trace(bytes, where, content);
}

Trace read_trace(const std::filesystem::path& file, TraceContent content) {
  const MappedFile mapped(file);
  const auto bytes = mapped.bytes();
  return read_trace({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string(), content);
}

}  // namespace tprimat::logs
