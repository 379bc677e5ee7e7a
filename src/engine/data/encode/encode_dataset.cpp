#include "data/encode/encode_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "data/dataset_writer.h"
#include "data/encode/document_encoder.h"
#include "data/token_format.h"

namespace tprimat::engine {
namespace {

// Takes blocks as they are ready and writes them in order. When one fails, those before it are still encoded, so that
// the first fault of the input is the one that is told.
class EncodeLine {
 public:
  EncodeLine(const EncodeRequest& request, TokenType type, const std::function<void(const EncodeProgress&)>& report)
      : reader_(request.inputs, request.form), writer_(request.output, type), type_(type), report_(report) {}

  void run(const Tokenizer& tokenizer, const EncodingRules& rules, int64_t threads) {
    most_waiting_ = static_cast<size_t>(4 * threads);
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back([&] { work(tokenizer, rules); });
    work(tokenizer, rules);
    for (std::thread& other : others) other.join();
    if (failure_) std::rethrow_exception(failure_);
    writer_.finish();
  }
  EncodeProgress progress() const { return progress_; }

 private:
  void work(const Tokenizer& tokenizer, const EncodingRules& rules) {
    TextBlock block;
    try {
      DocumentEncoder encoder(tokenizer, rules);
      while (take(block)) put(block.number, encoder.encode(block));
    } catch (...) {
      fail(block.number, std::current_exception());
    }
  }

  bool take(TextBlock& block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < most_waiting_ || failure_; });
    if (failure_) return false;
    block.number = next_to_take_;
    if (!reader_.next(block)) return false;
    ++next_to_take_;
    return true;
  }

  void put(int64_t number, EncodedBlock encoded) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(encoded));
    while (!waiting_.empty() && waiting_.begin()->first == next_to_write_) {
      write(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++next_to_write_;
    }
    changed_.notify_all();
  }

  void write(const EncodedBlock& encoded) {
    writer_.append_documents(encoded.tokens, encoded.lengths);
    progress_.documents += static_cast<int64_t>(encoded.lengths.size());
    progress_.tokens += static_cast<int64_t>(encoded.tokens.size()) / token_bytes(type_);
    progress_.text_bytes += encoded.text_bytes;
    progress_.bytes_read = reader_.bytes_read();
    progress_.bytes_in_all = reader_.bytes_in_all();
    progress_.seconds = seconds_since(start_);
    report_(progress_);
  }

  void fail(int64_t number, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || number < failed_block_) {
      failure_ = std::move(failure);
      failed_block_ = number;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;  // holds all below
  std::condition_variable changed_;
  TextBlockReader reader_;
  DatasetWriter writer_;
  const TokenType type_;
  const std::function<void(const EncodeProgress&)>& report_;
  std::map<int64_t, EncodedBlock> waiting_;
  size_t most_waiting_ = 0;
  int64_t next_to_take_ = 0, next_to_write_ = 0;
  std::exception_ptr failure_;
  int64_t failed_block_ = 0;
  EncodeProgress progress_;
  const SteadyClock::time_point start_ = SteadyClock::now();
};

TokenType choose_type(const EncodeRequest& request, const Tokenizer& tokenizer) {
  const TokenType type = request.type.value_or(default_token_type(tokenizer.vocab_size()));
  std::vector<std::byte> bytes;
  const auto greatest = static_cast<int32_t>(tokenizer.vocab_size() - 1);
  if (!append_tokens(type, std::array{greatest}, bytes))
    throw Error(Problem{fmt::format("{} cannot hold token {}", enum_name(type), greatest), "--dtype",
                        "omit it, or choose a wider type"});
  return type;
}

}  // namespace

EncodeSummary encode_dataset(const EncodeRequest& request, const Tokenizer& tokenizer,
                             const std::function<void(const EncodeProgress&)>& report) {
  const int64_t threads =
      request.threads > 0 ? request.threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
  const TokenType type = choose_type(request, tokenizer);
  EncodeLine line(request, type, report);
  line.run(tokenizer, {request.json_key, request.end_of_document, type}, threads);
  const EncodeProgress done = line.progress();
  EncodeSummary summary;
  summary.prefix = request.output;
  summary.tokenizer = tokenizer.describe();
  summary.type = type;
  summary.documents = done.documents;
  summary.tokens = done.tokens;
  summary.text_bytes = done.text_bytes;
  summary.seconds = done.seconds;
  summary.megabytes_per_second = done.seconds > 0 ? static_cast<double>(done.text_bytes) / done.seconds / 1e6 : 0;
  return summary;
}

}  // namespace tprimat::engine
