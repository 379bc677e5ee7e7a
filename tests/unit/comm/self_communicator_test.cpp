#include <gtest/gtest.h>

#include <array>

#include "comm/communicator.h"

namespace tprimat::engine {
namespace {

TEST(SelfCommunicator, IsAGroupOfOne) {
  const auto self = make_self_communicator();
  EXPECT_EQ(self->rank(), 0);
  EXPECT_EQ(self->size(), 1);
  EXPECT_EQ(self->split(3, 7)->size(), 1);
  self->barrier();
  self->progress();
}

TEST(SelfCommunicator, CollectivesKeepOrCopyTheValues) {
  const auto self = make_self_communicator();
  std::array<float, 3> values = {1, 2, 3}, copy = {}, again = {};
  self->all_reduce(values.data(), 3);
  EXPECT_EQ(values, (std::array<float, 3>{1, 2, 3}));
  self->all_gather(values.data(), 3, copy.data());
  EXPECT_EQ(copy, values);
  self->reduce_scatter(copy.data(), 3, again.data());
  EXPECT_EQ(again, values);
  std::array<float, 3> sent = {};
  self->all_to_all(values.data(), 3, sent.data());
  EXPECT_EQ(sent, values);
  self->all_gather(values.data(), 3, values.data());  // in place
  EXPECT_EQ(again, values);
  self->all_reduce<float>(nullptr, 0);
}

TEST(SelfCommunicator, ReceivesWhatItSendsInOrderPerTag) {
  const auto self = make_self_communicator();
  const std::array<int32_t, 2> first = {1, 2}, second = {3, 4}, other = {5, 6};
  std::array<int32_t, 2> a = {}, b = {}, c = {};
  const auto early = self->start_receive(comm_buffer(a.data(), 2), 0, 1);
  const auto sent_first = self->start_send(comm_buffer(first.data(), 2), 0, 1);
  const auto sent_other = self->start_send(comm_buffer(other.data(), 2), 0, 2);
  const auto sent_second = self->start_send(comm_buffer(second.data(), 2), 0, 1);
  self->start_receive(comm_buffer(c.data(), 2), 0, 2)->wait();
  self->start_receive(comm_buffer(b.data(), 2), 0, 1)->wait();
  early->wait();
  EXPECT_EQ(a, first);
  EXPECT_EQ(b, second);
  EXPECT_EQ(c, other);
}

TEST(SelfCommunicatorDeathTest, WaitingForWhatNobodySendsIsABug) {
  const auto self = make_self_communicator();
  int32_t value = 0;
  EXPECT_DEATH(self->start_receive(comm_buffer(&value, 1), 0, 0)->wait(), "is_waiting");
}

TEST(ElementBytes, AreTheSizesOfTheTypes) {
  EXPECT_EQ(element_bytes(element_type_of<float>()), 4);
  EXPECT_EQ(element_bytes(element_type_of<double>()), 8);
  EXPECT_EQ(element_bytes(element_type_of<bf16>()), 2);
  EXPECT_EQ(element_bytes(element_type_of<f16>()), 2);
  EXPECT_EQ(element_bytes(element_type_of<int32_t>()), 4);
  EXPECT_EQ(element_bytes(element_type_of<int64_t>()), 8);
  EXPECT_EQ(element_bytes(element_type_of<std::byte>()), 1);
  EXPECT_EQ(comm_buffer<const bf16>(nullptr, 5).size(), 10);
}

}  // namespace
}  // namespace tprimat::engine
