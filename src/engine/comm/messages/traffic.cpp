#include "comm/messages/traffic.h"

#include <exception>
#include <utility>

namespace tprimat::engine {

class WorkTransfer : public Transfer {
 public:
  WorkTransfer(Traffic& traffic, std::unique_ptr<MessageWork> work) : traffic_(traffic), work_(std::move(work)) {
    traffic_.transfers_.push_back(this);
  }

  ~WorkTransfer() override {
    try {
      if (std::uncaught_exceptions() == exceptions_) wait();
    } catch (const std::exception&) {  // the next transfer tells
    }
    if (work_) give_up();
  }

  void wait() override {
    for (int calls = 0; work_; ++calls) {
      traffic_.advance_all();
      if (work_) traffic_.pause(calls);
    }
  }

  void advance() {
    if (!work_ || !work_->advance()) return;
    work_.reset();
    leave();
  }

 private:
  void give_up() {
    leave();
    traffic_.abandon(std::move(work_));
  }
  void leave() { std::erase(traffic_.transfers_, this); }

  Traffic& traffic_;
  std::unique_ptr<MessageWork> work_;  // nothing once it is done
  int exceptions_ = std::uncaught_exceptions();
};

TransferPtr Traffic::start(std::unique_ptr<MessageWork> work) {
  auto transfer = std::make_unique<WorkTransfer>(*this, std::move(work));
  transfer->advance();
  return transfer;
}

void Traffic::move_on() {
  exchange();
  advance_all();
}

// Backwards, because those that are done leave the list.
void Traffic::advance_all() {
  for (size_t i = transfers_.size(); i-- > 0;) transfers_[i]->advance();
}

}  // namespace tprimat::engine
