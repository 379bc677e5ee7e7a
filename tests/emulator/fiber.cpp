#include "emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/sanitizers.h"

#if TPRIMAT_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Keeps the registers that a call must keep (System V ABI) on the stack that is left, and takes those of the other.
// swapcontext would ask the kernel for the signals' mask twice.
asm(R"(
.pushsection .text
.type tprimat_switch_stack, @function
tprimat_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tprimat_switch_stack, .-tprimat_switch_stack
.popsection
)");
extern "C" [[gnu::visibility("hidden")]] void tprimat_switch_stack(void** left, void* taken);
#endif

namespace tprimat::engine::gpu::host {
namespace {

constexpr size_t k_fiber_stack = size_t{128} << 10, k_closed_bytes = 4096;

thread_local Fiber* last_left = nullptr;
thread_local Fiber* last_begun = nullptr;

}  // namespace

FiberStack::FiberStack() {
  void* const memory = ::mmap(nullptr, k_fiber_stack + k_closed_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED && ::mprotect(memory, k_closed_bytes, PROT_NONE) == 0);
  memory_ = static_cast<std::byte*>(memory);
}
FiberStack::~FiberStack() { ::munmap(memory_, k_fiber_stack + k_closed_bytes); }
std::byte* FiberStack::bottom() const { return memory_ + k_closed_bytes; }
size_t FiberStack::bytes() { return k_fiber_stack; }

void Fiber::begin() {
  Fiber& here = *last_begun;
  here.arrive();
  here.enter_();
  CHECK(false);
}

void Fiber::start(void (*enter)()) {
  if (!stack_) stack_ = std::make_unique<FiberStack>();
  enter_ = enter;
  stack_bottom_ = stack_->bottom();
  stack_bytes_ = FiberStack::bytes();
  fake_stack_ = nullptr;
#if defined(__x86_64__)
  constexpr size_t k_kept_registers = 6;
  void (*const first)() = &Fiber::begin;
  auto* const top = reinterpret_cast<void**>(stack_->bottom() + FiberStack::bytes());
  top[-1] = nullptr;  // nobody to return to, at the place that a call leaves aligned
  std::memcpy(&top[-2], &first, sizeof first);
  stack_pointer_ = top - 2 - k_kept_registers;
  std::memset(stack_pointer_, 0, k_kept_registers * sizeof(void*));
#else
  ::getcontext(&context_);
  context_.uc_stack.ss_sp = stack_->bottom();
  context_.uc_stack.ss_size = FiberStack::bytes();
  context_.uc_link = nullptr;
  ::makecontext(&context_, &Fiber::begin, 0);
#endif
}

void Fiber::leave_for(Fiber& next, [[maybe_unused]] bool for_ever) {
  last_left = this;
  last_begun = &next;
#if TPRIMAT_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_stack_, next.stack_bottom_, next.stack_bytes_);
#endif
#if defined(__x86_64__)
  tprimat_switch_stack(&stack_pointer_, next.stack_pointer_);
#else
  ::swapcontext(&context_, &next.context_);
#endif
  arrive();
}

// What was left for this one tells where its own stack lies.
void Fiber::arrive() {
#if TPRIMAT_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack_, &last_left->stack_bottom_, &last_left->stack_bytes_);
#endif
}

}  // namespace tprimat::engine::gpu::host
