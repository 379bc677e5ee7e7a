#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace tprimat::engine {

// One transfer's work: several phases of messages with computation between them.
class MessageWork {
 public:
  virtual ~MessageWork() = default;
  virtual bool advance() = 0;  // as far as it goes without waiting; true when all is done
};

class WorkTransfer;

// All transfers of this process that are under way, whatever their group.
class Traffic {
 public:
  Traffic() = default;
  virtual ~Traffic() = default;
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Makes the work a transfer: it is moved on whenever this process waits for any transfer or calls move_on().
  TransferPtr start(std::unique_ptr<MessageWork> work);
  void move_on();
  bool is_under_way() const { return !transfers_.empty(); }

 private:
  friend class WorkTransfer;

  // Lets messages travel that can do so without waiting.
  virtual void exchange() = 0;
  // Called again and again while transfers wait, which have looked at their messages since the last call.
  virtual void pause(int calls) = 0;
  // A transfer goes before its end, because an exception is on its way: the other ranks may never send.
  virtual void abandon(std::unique_ptr<MessageWork> work) = 0;

  void advance_all();

  std::vector<WorkTransfer*> transfers_;
};

}  // namespace tprimat::engine
