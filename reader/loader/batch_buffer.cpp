// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/batch_buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "precache/formats/error.hpp"
#include "reader/loader/augment/view_passes.hpp"

namespace precache {
namespace {

constexpr std::size_t kVector = 64;
constexpr std::size_t kHugePage = 2 << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t size) {
  // A consumer may hold thousands of small batches, and none of them should take a huge page.
  const bool is_large = size >= kHugePage;
  void* bytes = nullptr;
  if (::posix_memalign(&bytes, is_large ? kHugePage : kVector, size) != 0) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(bytes), [](std::byte* pointer) { std::free(pointer); }};
  // Only a hint. Without huge pages, a batch takes thousands of TLB entries.
  if (is_large) (void)::madvise(bytes, size, MADV_HUGEPAGE);
}

std::byte* BatchBuffer::make_writable() {
  if (view == nullptr) return buffer.data();
  if (!own) {
    own.emplace(view, static_cast<std::uint64_t>(data - view->bytes().data()), bytes());
    data = own->bytes().data();
  }
  return own->bytes().data();
}

BufferPool::BufferPool(std::size_t capacity, std::function<AlignedBuffer()> make_buffer)
    : capacity_(capacity), make_buffer_(std::move(make_buffer)) {
  free_.reserve(capacity);
  free_buffers_.reserve(capacity);
}

AlignedBuffer BufferPool::take_buffer() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_buffers_.empty()) {
      AlignedBuffer buffer = std::move(free_buffers_.back());
      free_buffers_.pop_back();
      return buffer;
    }
  }
  return make_buffer_();
}

std::unique_ptr<BatchBuffer> BufferPool::take() {
  std::unique_ptr<BatchBuffer> batch;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      batch = std::move(free_.front());
      free_.erase(free_.begin());
    }
  }
  if (batch == nullptr) return std::make_unique<BatchBuffer>();
  batch->ends_epoch = batch->is_announced = false;
  batch->rows_claimed = batch->rows_done = 0;
  batch->error = nullptr;
  return batch;
}

void BufferPool::give_back(std::unique_ptr<BatchBuffer> batch) {
  AlignedBuffer buffer = std::move(batch->buffer);  // freed after the lock is released, if at all
  const std::lock_guard lock(mutex_);
  if (buffer.data() != nullptr && free_buffers_.size() < capacity_) {
    free_buffers_.push_back(std::move(buffer));
  }
  if (free_.size() < capacity_) free_.push_back(std::move(batch));
}

Batch::Batch(std::unique_ptr<BatchBuffer> buffer) : buffer_(std::move(buffer)) {}
Batch::Batch(Batch&&) noexcept = default;

Batch& Batch::operator=(Batch&& other) noexcept {
  std::swap(buffer_, other.buffer_);
  return *this;
}

Batch::~Batch() {
  if (buffer_ == nullptr) return;
  // This may be the last reference to the pool, so it must last until the call returns.
  const std::shared_ptr<BufferPool> home = std::move(buffer_->home);
  home->give_back(std::move(buffer_));
}

std::size_t Batch::size() const { return buffer_->samples.size(); }
TensorSpec Batch::spec() const { return buffer_->spec; }
const std::byte* Batch::data() const& { return buffer_->data; }
std::byte* Batch::make_writable() & { return buffer_->make_writable(); }
std::size_t Batch::stride_bytes() const { return buffer_->stride_bytes; }
std::span<const std::int64_t> Batch::labels() const& { return buffer_->labels; }
std::span<const std::uint64_t> Batch::samples() const& { return buffer_->samples; }
std::span<const std::uint32_t> Batch::repeats() const& { return buffer_->repeats; }
std::size_t Batch::views() const { return buffer_->passes->size(); }
std::span<const NamedColumn> Batch::columns() const& {
  return buffer_->columns == nullptr ? std::span<const NamedColumn>() : *buffer_->columns;
}

std::span<const std::byte> Batch::column_bytes(std::size_t i) const& {
  return buffer_->column_values[i];
}

std::size_t Batch::column_number(std::string_view name) const {
  const auto all = columns();
  const auto found = std::ranges::find(all, name, &NamedColumn::name);
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  throw InvalidArgument(fmt::format("the batch has no column '{}'", name),
                        "LoaderOptions::columns says which columns batches have.");
}

bool Batch::is_view() const { return buffer_->view != nullptr; }

std::span<const std::byte> Batch::operator[](std::size_t i) const& {
  return {buffer_->data + i * buffer_->stride_bytes, buffer_->spec.size_bytes()};
}

BatchView Batch::view(std::size_t i) const& {
  if (i == 0) return {spec(), data(), size(), stride_bytes()};
  const TensorSpec& spec = buffer_->passes->view(i).result();
  return {spec, buffer_->buffer.data() + buffer_->passes->offset(i, size()), size(),
          spec.size_bytes()};
}

void Batch::check() const {
  if (buffer_->view != nullptr) buffer_->view->check();
}

}  // namespace precache
