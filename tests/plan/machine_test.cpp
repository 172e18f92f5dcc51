// Limits of control groups, read from directories that look like /proc and /sys.
#include "plan/machine.hpp"

#include <unistd.h>

#include <fstream>

#include "catch.hpp"

namespace quern::tests {

namespace {

namespace fs = std::filesystem;

struct Root {
  fs::path path = fs::temp_directory_path() / ("quern-machine-" + std::to_string(getpid()));
  Root() { fs::remove_all(path); }
  ~Root() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

}  // namespace

TEST_CASE("version 2: the tightest limit on the way to the root, without pages that can be dropped", "[plan]") {
  const Root root;
  root.write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    8000 kB\n");
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/memory.max", "5000000\n");
  root.write("sys/fs/cgroup/a/memory.current", "3000000\n");
  root.write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1000000\nactive_file 7\n");
  const plan::MachineMemory memory = plan::machine_memory(root.path);
  CHECK(memory.available == 8000 * 1024);
  CHECK(memory.cgroup_limit == 5'000'000);
  CHECK(memory.cgroup_used == 2'000'000);
  CHECK(memory.usable() == 3'000'000);
}

TEST_CASE("version 1: the memory controller's group, or the mount itself in a container", "[plan]") {
  const Root root;
  root.write("proc/meminfo", "MemAvailable: 1000 kB\n");
  root.write("proc/self/cgroup", "9:cpu:/x\n4:cpuset,memory:/docker/1\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2500000\n");
  CHECK(plan::machine_memory(root.path).usable() == 500'000);
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(plan::machine_memory(root.path).cgroup_limit);
  CHECK(plan::machine_memory(root.path).usable() == 1000 * 1024);
}

TEST_CASE("nothing readable is no limit", "[plan]") {
  const Root root;
  CHECK(plan::machine_memory(root.path).usable() == 0);
  root.write("proc/self/cgroup", "0::/../../etc\n4:memory\n\nx");
  CHECK_FALSE(plan::machine_memory(root.path).cgroup_limit);
}

}  // namespace quern::tests
