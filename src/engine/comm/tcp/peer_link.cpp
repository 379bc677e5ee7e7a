#include "comm/tcp/peer_link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_longest_eager = 64 << 10;  // bytes; longer messages are offered
constexpr size_t k_staging_bytes = 128 << 10;
constexpr int64_t k_read_at_once = 8 << 20;  // bytes, before others have their turn

void close_message(const OpenMessages& open) {
  if (open) --*open;
}

}  // namespace

PeerLink::PeerLink(Socket socket, int peer) : socket_(std::move(socket)), peer_(peer), is_self_(!socket_.is_open()) {
  if (!is_self_) staging_.resize(k_staging_bytes);
}

// Both ends run the same program; machines with another order of bytes were refused at the rendezvous.
std::array<std::byte, PeerLink::k_head_bytes> PeerLink::print_head(const Head& head) {
  std::array<std::byte, k_head_bytes> bytes{};
  const std::array<uint32_t, 4> words = {static_cast<uint32_t>(head.kind), head.key.context, head.key.tag, head.number};
  std::memcpy(bytes.data(), words.data(), sizeof words);
  std::memcpy(bytes.data() + sizeof words, &head.bytes, sizeof head.bytes);
  return bytes;
}

PeerLink::Head PeerLink::parse_head(std::span<const std::byte> bytes) {
  std::array<uint32_t, 4> words{};
  Head head;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  std::memcpy(&head.bytes, bytes.data() + sizeof words, sizeof head.bytes);
  head.kind = static_cast<Kind>(words[0]);
  head.key = {words[1], words[2]};
  head.number = words[3];
  return head;
}

void PeerLink::fail(const std::string& what, const std::string& hint) const {
  throw Error(Problem{what, "ranks over TCP", hint}, ExitStatus::work_failed);
}

void PeerLink::check_bytes(int64_t came, int64_t wanted) const {
  if (came == wanted) return;
  fail(fmt::format("rank {} sent {} bytes, but this rank expects {}", peer_, came, wanted),
       "train the same specification with the same program on all ranks");
}

void PeerLink::queue_frame(const Head& head, const std::byte* data, OpenMessages open) {
  outgoing_.push_back({print_head(head), data, data != nullptr ? head.bytes : 0, 0, std::move(open)});
}

void PeerLink::post_send(MessageKey key, const std::byte* data, int64_t bytes, OpenMessages open) {
  ++*open;
  if (is_self_) {
    early_body_.assign(data, data + bytes);
    body_key_ = key;
    body_is_early_ = true;
    end_body();
    close_message(open);
    return;
  }
  if (!is_connected()) fail(fmt::format("rank {} has already ended", peer_), "see its own message for the cause");
  if (bytes <= k_longest_eager) {
    queue_frame({Kind::message, key, 0, bytes}, bytes > 0 ? data : nullptr, std::move(open));
  } else {
    queue_frame({Kind::offer, key, next_offer_, bytes}, nullptr, nullptr);
    offers_[next_offer_++] = {data, bytes, std::move(open)};
  }
  write();
}

void PeerLink::post_receive(MessageKey key, std::byte* data, int64_t bytes, OpenMessages open) {
  ++*open;
  const Place place{data, bytes, std::move(open)};
  const auto found = early_.find(key);
  if (found == early_.end()) {
    if (!is_self_ && !is_connected())
      fail(fmt::format("rank {} has already ended", peer_), "see its own message for the cause");
    places_[key].push_back(place);
    return;
  }
  const Early early = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) early_.erase(found);
  check_bytes(early.bytes, bytes);
  if (early.offered) return accept_offer(early.number, place);
  if (bytes > 0) std::memcpy(data, early.data.data(), static_cast<size_t>(bytes));
  close_message(place.open);
}

void PeerLink::accept_offer(uint32_t number, const Place& place) {
  accepted_[number] = place;
  queue_frame({Kind::accept, {}, number, 0}, nullptr, nullptr);
  write();
}

// What is left unsent when the other side is gone is told by read().
void PeerLink::write() {
  while (has_to_write()) {
    Outgoing& frame = outgoing_.front();
    const auto head_left = std::max<int64_t>(static_cast<int64_t>(k_head_bytes) - frame.sent, 0);
    const int64_t data_sent = frame.sent + head_left - static_cast<int64_t>(k_head_bytes);
    std::array<iovec, 2> parts{};
    parts[0] = {frame.head.data() + k_head_bytes - head_left, static_cast<size_t>(head_left)};
    parts[1] = {const_cast<std::byte*>(frame.data) + data_sent, static_cast<size_t>(frame.bytes - data_sent)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = frame.bytes > data_sent ? 2 : 1;
    const ssize_t sent = ::sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      is_closed_to_us_ = errno != EAGAIN;
      return;
    }
    frame.sent += sent;
    if (frame.sent < static_cast<int64_t>(k_head_bytes) + frame.bytes) continue;
    close_message(frame.open);
    outgoing_.pop_front();
  }
}

void PeerLink::read() {
  for (int64_t left = k_read_at_once; left > 0 && is_connected();) {
    const bool direct =
        in_body_ && staged_begin_ == staged_end_ && body_.bytes >= static_cast<int64_t>(k_staging_bytes);
    const std::span<std::byte> to = direct ? std::span(body_.data, static_cast<size_t>(std::min(body_.bytes, left)))
                                           : std::span(staging_).subspan(staged_end_);
    const auto count = receive_some(socket_, to);
    if (!count) return end();
    if (*count == 0) return;
    left -= static_cast<int64_t>(*count);
    if (direct) {
      body_.data += *count;
      body_.bytes -= static_cast<int64_t>(*count);
      if (body_.bytes == 0) end_body();
    } else {
      staged_end_ += *count;
      read_frames();
    }
  }
}

void PeerLink::read_frames() {
  while (true) {
    const size_t staged = staged_end_ - staged_begin_;
    if (in_body_) {
      const size_t part = std::min(staged, static_cast<size_t>(body_.bytes));
      if (part > 0) std::memcpy(body_.data, staging_.data() + staged_begin_, part);
      staged_begin_ += part;
      body_.data += part;
      body_.bytes -= static_cast<int64_t>(part);
      if (body_.bytes > 0) break;
      end_body();
    } else if (staged >= k_head_bytes) {
      const Head head = parse_head(std::span(staging_).subspan(staged_begin_, k_head_bytes));
      staged_begin_ += k_head_bytes;
      begin_frame(head);
    } else {
      break;
    }
  }
  std::copy(staging_.begin() + static_cast<long>(staged_begin_), staging_.begin() + static_cast<long>(staged_end_),
            staging_.begin());
  staged_end_ -= staged_begin_;
  staged_begin_ = 0;
}

void PeerLink::begin_frame(const Head& head) {
  switch (head.kind) {
    case Kind::message: return begin_message(head);
    case Kind::offer: return take_offer(head);
    case Kind::accept: return answer_accept(head);
    case Kind::payload: return begin_payload(head);
    case Kind::goodbye: said_goodbye_ = true; return;
  }
  fail(fmt::format("rank {} sent an unknown kind of message", peer_),
       "check the network: it corrupts data between the machines");
}

PeerLink::Place PeerLink::take_place(MessageKey key, int64_t bytes) {
  const auto found = places_.find(key);
  CHECK(found != places_.end());
  Place place = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) places_.erase(found);
  check_bytes(bytes, place.bytes);
  return place;
}

void PeerLink::begin_message(const Head& head) {
  if (head.bytes < 0 || head.bytes > k_longest_eager)
    fail(fmt::format("rank {} sent an unexpected message of {} bytes", peer_, head.bytes), "");
  in_body_ = true;
  body_key_ = head.key;
  body_is_early_ = !places_.contains(head.key);
  if (body_is_early_) {
    early_body_.resize(static_cast<size_t>(head.bytes));
    body_ = {early_body_.data(), head.bytes, nullptr};
  } else {
    body_ = take_place(head.key, head.bytes);
  }
}

void PeerLink::take_offer(const Head& head) {
  if (places_.contains(head.key)) return accept_offer(head.number, take_place(head.key, head.bytes));
  early_[head.key].push_back({true, head.number, head.bytes, {}});
}

void PeerLink::answer_accept(const Head& head) {
  const auto found = offers_.find(head.number);
  if (found == offers_.end()) fail(fmt::format("rank {} accepted an unknown offer", peer_), "");
  const Source source = std::move(found->second);
  offers_.erase(found);
  queue_frame({Kind::payload, {}, head.number, source.bytes}, source.data, source.open);
  write();
}

void PeerLink::begin_payload(const Head& head) {
  const auto found = accepted_.find(head.number);
  if (found == accepted_.end() || found->second.bytes != head.bytes)
    fail(fmt::format("rank {} sent a payload without acceptance", peer_), "");
  in_body_ = true;
  body_is_early_ = false;
  body_ = std::move(found->second);
  accepted_.erase(found);
}

// A place may have been asked for while the message was coming.
void PeerLink::end_body() {
  in_body_ = false;
  if (!body_is_early_) return close_message(std::exchange(body_.open, nullptr));
  body_is_early_ = false;
  const auto bytes = static_cast<int64_t>(early_body_.size());
  if (!places_.contains(body_key_)) {
    early_[body_key_].push_back({false, 0, bytes, std::exchange(early_body_, {})});
    return;
  }
  const Place place = take_place(body_key_, bytes);
  if (bytes > 0) std::memcpy(place.data, early_body_.data(), early_body_.size());
  close_message(place.open);
}

void PeerLink::end() {
  socket_ = Socket();
  const bool has_unsent =
      std::any_of(outgoing_.begin(), outgoing_.end(), [](const Outgoing& each) { return each.open != nullptr; });
  const bool was_needed = has_unsent || in_body_ || !places_.empty() || !accepted_.empty() || !offers_.empty();
  if (!said_goodbye_)
    fail(fmt::format("rank {} ended before its work was done: its connection was closed", peer_),
         "see its own message for the cause, or the launcher's if it was killed");
  if (was_needed)
    fail(fmt::format("rank {} finished while this rank still exchanges data with it", peer_),
         "train the same specification with the same program on all ranks");
}

void PeerLink::say_goodbye() {
  if (is_connected()) queue_frame({Kind::goodbye, {}, 0, 0}, nullptr, nullptr);
}

void PeerLink::drop_messages() {
  outgoing_.clear();
  offers_.clear();
  places_.clear();
  accepted_.clear();
  early_.clear();
  socket_ = Socket();
}

}  // namespace tprimat::engine
