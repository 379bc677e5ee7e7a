#include "comm/tcp/rendezvous_messages.h"

#include <gtest/gtest.h>

#include <random>

namespace tprimat::engine {
namespace {

RendezvousHello some_hello() {
  RendezvousHello hello{RendezvousHello::Purpose::pair, 8, 5, 2, 40123, 0x0123456789abcdef, {}, "0.1.0+abc"};
  for (size_t i = 0; i < hello.token.size(); ++i) hello.token[i] = static_cast<uint8_t>(i * 17);
  return hello;
}

TEST(RendezvousHello, ComesBackAsItWasPrinted) {
  const RendezvousHello hello = some_hello();
  EXPECT_EQ(parse_hello(print_hello(hello)), hello);
}

TEST(RendezvousHello, WhatNoRankSaysIsNone) {
  const auto spoilt = [](auto&& spoil) {
    RendezvousHello hello = some_hello();
    spoil(hello);
    return parse_hello(print_hello(hello));
  };
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.rank = 8; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.to = 8; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.size = 0; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.size = 1u << 31; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.purpose = RendezvousHello::Purpose{3}; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.version = "\x1b[31m"; }));
  const auto bytes = print_hello(some_hello());
  EXPECT_FALSE(parse_hello(std::span(bytes).first(k_hello_bytes - 1)));
  for (size_t i = 0; i < 12; ++i) {  // magic and protocol
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(parse_hello(changed)) << i;
  }
}

// Whatever is understood is within its bounds, and is what its print says.
TEST(RendezvousMessages, UnderRandomChangesStayWithinTheirBounds) {
  std::mt19937 random(1);
  const auto change = [&](auto bytes) {
    for (unsigned i = random() % 6; i-- > 0;) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    return bytes;
  };
  RendezvousTable table;
  for (uint16_t rank = 0; rank < 5; ++rank)
    table.places.push_back(ipv4_address({10, 0, 0, 1}, static_cast<uint16_t>(rank * 1000)));
  const RendezvousMessage message{RendezvousMessage::Verdict::missing, 3, 1, "0.1.0"};
  ASSERT_EQ(parse_message(print_message(message)), message);
  ASSERT_EQ(parse_table(print_table(table), 5), table);
  int understood = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (const auto hello = parse_hello(change(print_hello(some_hello())))) {
      EXPECT_LT(hello->rank, hello->size);
      EXPECT_LE(hello->size, uint32_t{k_max_tcp_ranks});
      EXPECT_EQ(parse_hello(print_hello(*hello)), hello);
      ++understood;
    }
    if (const auto other = parse_message(change(print_message(message)))) {
      EXPECT_EQ(parse_message(print_message(*other)), other);
    }
    if (const auto other = parse_table(change(print_table(table)), 5)) {
      EXPECT_EQ(parse_table(print_table(*other), 5), other);
    }
  }
  EXPECT_GT(understood, 1000);
}

TEST(RendezvousTable, IsOfAsManyRanksAsThereAre) {
  RendezvousTable table;
  table.places.resize(3, ipv4_address({127, 0, 0, 1}, 5));
  const auto bytes = print_table(table);
  EXPECT_EQ(bytes.size(), table_bytes(3));
  EXPECT_FALSE(parse_table(bytes, 2));
  EXPECT_FALSE(parse_table(bytes, 4));
  EXPECT_FALSE(parse_table(bytes, 0));
  EXPECT_FALSE(parse_table(bytes, -1));
  table.places[2].port = 0;
  EXPECT_FALSE(parse_table(print_table(table), 3));
}

}  // namespace
}  // namespace tprimat::engine
