#include "comm/tcp/peer_link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_longest_eager = 64 << 10;  // bytes; longer messages are offered
constexpr int64_t k_read_at_once = 8 << 20;    // bytes, before others have their turn
constexpr double k_goodbye_seconds = 10;
constexpr const char* k_same_program_hint = "train the same specification with the same program on all ranks";

// The first of a key; nothing where there is none.
template <class Value>
std::optional<Value> take_first(std::multimap<MessageKey, Value>& values, MessageKey key) {
  const auto found = values.lower_bound(key);
  if (found == values.end() || found->first != key) return std::nullopt;
  return std::move(values.extract(found).mapped());
}

void copy_message(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

void PeerLink::fail(const std::string& what, const std::string& hint) const {
  throw Error(Problem{what, "ranks over TCP", hint}, ExitStatus::work_failed);
}

void PeerLink::check_bytes(int64_t came, int64_t wanted) const {
  if (came != wanted)
    fail(fmt::format("rank {} sent {} bytes, but this rank expects {}", peer_, came, wanted), k_same_program_hint);
}

void PeerLink::check_not_ended() const {
  if (!is_connected()) fail(fmt::format("rank {} has already ended", peer_), "see its own message for the cause");
}

void PeerLink::post_send(MessageKey key, const std::byte* data, int64_t bytes, OpenMessages open) {
  if (is_self_) return keep(key, {data, data + bytes});
  check_not_ended();
  ++*open;
  Part part{const_cast<std::byte*>(data), bytes, std::move(open)};
  if (bytes <= k_longest_eager) return queue_frame(Kind::message, key, std::move(part));
  queue_frame(Kind::offer, key, {nullptr, bytes, nullptr});
  offers_.emplace(key, std::move(part));
}

void PeerLink::post_receive(MessageKey key, std::byte* data, int64_t bytes, OpenMessages open) {
  const auto early = take_first(early_, key);
  if (early && early->data) {
    check_bytes(early->bytes, bytes);
    return copy_message(data, *early->data);
  }
  if (!is_self_) check_not_ended();
  ++*open;
  Part place{data, bytes, std::move(open)};
  if (early) return accept_offer(key, early->bytes, std::move(place));
  places_.emplace(key, std::move(place));
}

void PeerLink::accept_offer(MessageKey key, int64_t bytes, Part place) {
  check_bytes(bytes, place.bytes);
  accepted_.emplace(key, std::move(place));
  queue_frame(Kind::accept, key, {nullptr, bytes, nullptr});
}

void PeerLink::queue_frame(Kind kind, MessageKey key, Part part) {
  const Head head{kind, key, 0, part.bytes};
  if (part.data == nullptr) part.bytes = 0;
  outgoing_.push_back({head, std::move(part)});
  write();
}

// What is left unsent when the other side is gone is told by read().
void PeerLink::write() {
  constexpr auto k_head = static_cast<int64_t>(sizeof(Head));
  while (has_to_write()) {
    Frame& frame = outgoing_.front();
    const int64_t head_sent = std::min(frame.sent, k_head), part_sent = frame.sent - head_sent;
    std::array<iovec, 2> parts{};
    parts[0] = {reinterpret_cast<std::byte*>(&frame.head) + head_sent, static_cast<size_t>(k_head - head_sent)};
    parts[1] = {frame.part.data + part_sent, static_cast<size_t>(frame.part.bytes - part_sent)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts[1].iov_len > 0 ? 2 : 1;
    const ssize_t sent = ::sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      is_closed_to_us_ = errno != EAGAIN;
      return;
    }
    frame.sent += sent;
    if (frame.sent < k_head + frame.part.bytes) continue;
    if (frame.part.open) --*frame.part.open;
    outgoing_.pop_front();
  }
}

void PeerLink::read() {
  for (int64_t left = k_read_at_once; left > 0 && is_connected();) {
    const bool in_head = head_count_ < sizeof head_;
    const auto to = in_head ? std::as_writable_bytes(std::span(&head_, 1)).subspan(head_count_)
                            : std::span(body_.data, static_cast<size_t>(std::min(body_.bytes, left)));
    const auto count = receive_some(socket_, to);
    if (!count) return end();
    if (*count == 0) return;
    left -= static_cast<int64_t>(*count);
    if (in_head) {
      head_count_ += *count;
      if (head_count_ < sizeof head_) continue;
      begin_frame();
    } else {
      body_.data += *count;
      body_.bytes -= static_cast<int64_t>(*count);
    }
    if (body_.bytes == 0) end_frame();
  }
}

PeerLink::Part PeerLink::take_announced(Parts& parts) {
  auto part = take_first(parts, head_.key);
  if (!part || part->bytes != head_.bytes)
    fail(fmt::format("rank {} sent {} bytes that nobody asked for", peer_, head_.bytes), k_same_program_hint);
  return std::move(*part);
}

void PeerLink::begin_frame() {
  switch (head_.kind) {
    case Kind::message: return begin_message();
    case Kind::offer:
      if (auto place = take_first(places_, head_.key)) return accept_offer(head_.key, head_.bytes, std::move(*place));
      early_.emplace(head_.key, EarlyMessage{head_.bytes, std::nullopt});
      return;
    case Kind::accept: return queue_frame(Kind::payload, head_.key, take_announced(offers_));
    case Kind::payload: body_ = take_announced(accepted_); return;
    case Kind::goodbye: said_goodbye_ = true; return;
  }
  fail(fmt::format("rank {} sent an unknown kind of message", peer_),
       "check the network: it corrupts data between the machines");
}

void PeerLink::begin_message() {
  if (head_.bytes < 0 || head_.bytes > k_longest_eager)
    fail(fmt::format("rank {} sent an unexpected message of {} bytes", peer_, head_.bytes), "");
  if (auto place = take_first(places_, head_.key)) {
    check_bytes(head_.bytes, place->bytes);
    body_ = std::move(*place);
  } else {
    early_body_.resize(static_cast<size_t>(head_.bytes));
    body_ = {early_body_.data(), head_.bytes, nullptr};
  }
}

void PeerLink::end_frame() {
  head_count_ = 0;
  if (body_.open)
    --*body_.open;
  else if (head_.kind == Kind::message)
    keep(head_.key, std::exchange(early_body_, {}));
  body_ = {};
}

// A place may have been asked for while the message was coming.
void PeerLink::keep(MessageKey key, std::vector<std::byte> message) {
  const auto bytes = std::ssize(message);
  if (const auto place = take_first(places_, key)) {
    check_bytes(bytes, place->bytes);
    copy_message(place->data, message);
    --*place->open;
  } else {
    early_.emplace(key, EarlyMessage{bytes, std::move(message)});
  }
}

void PeerLink::end() {
  socket_ = Socket();
  const bool has_unsent = std::ranges::any_of(outgoing_, [](const Frame& frame) { return frame.part.open != nullptr; });
  if (!said_goodbye_)
    fail(fmt::format("rank {} ended before its work was done: its connection was closed", peer_),
         "see its own message for the cause, or the launcher's if it was killed");
  if (has_unsent || head_count_ > 0 || !places_.empty() || !accepted_.empty() || !offers_.empty())
    fail(fmt::format("rank {} finished while this rank still exchanges data with it", peer_), k_same_program_hint);
}

void PeerLink::say_goodbye() {
  const Head head{Kind::goodbye, {}, 0, 0};
  if (is_connected()) send_all(socket_, std::as_bytes(std::span(&head, 1)), deadline_in(k_goodbye_seconds));
}

void PeerLink::drop_messages() {
  outgoing_.clear();
  for (Parts* parts : {&offers_, &places_, &accepted_}) parts->clear();
  early_.clear();
  socket_ = Socket();
}

}  // namespace tprimat::engine
