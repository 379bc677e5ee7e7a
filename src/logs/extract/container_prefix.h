#pragma once

#include <string_view>

namespace tprimat::logs {

// Cuts off what containers, schedulers and log collectors put before a line: docker compose ("trainer-1  | "), Ray
// ("(RayTrainWorker pid=123, ip=10.0.0.1) "), kubectl ("[pod/name/container] "), syslog and `ts` ("Nov 21 03:57:42 ",
// and behind it "node01 train.sh[12]: "), pdsh before a line that starts with "[" or a year ("worker-1: [2024-..").
// False, and nothing changes, when there is none of them.
bool take_container_prefix(std::string_view& text);

// Cuts off the stream's name that Kubernetes puts behind a time stamp: " stdout F ".
void skip_stream_name(std::string_view& text);

}  // namespace tprimat::logs
