#include "launch/kubernetes_manifest.h"

#include <gtest/gtest.h>

#include "launch/kubernetes_start.h"
#include "launch/manifest_text.h"
#include "unit/launch/launcher_case.h"

namespace tprimat::suite {
namespace {

// Eight ranks on two nodes of a cluster, with the output on a volume.
class KubernetesTest : public LauncherTest {
 protected:
  KubernetesTest() {
    request_.launch.launcher = Launcher::kubernetes;
    request_.launch.nodes = 2;
    settings_.namespace_name = "ml";
    settings_.image = "registry/tprimat:1";
    settings_.volumes = {"claim:shared:/out", "host:/nvme/data:/data:ro"};
    settings_.memory = "64Gi";
    settings_.resources = {{"rdma/ib", "4"}};
    settings_.node_selector = {{"zone", "true"}};
    settings_.tolerations = {"nvidia.com/gpu:NoSchedule", "dedicated=training"};
    settings_.secrets = {{"HF_TOKEN", "hf/token"}};
    settings_.capabilities = {"IPC_LOCK"};
  }
  // Without the ConfigMap, which holds whole programs.
  std::string jobset(Framework framework) const {
    const std::string text = file_of(plan(framework), "jobset.yaml");
    return text.substr(text.find("\n---\n") + 5);
  }
  std::string start_script(Framework framework) const {
    const std::string text = file_of(plan(framework), "jobset.yaml");
    return text.substr(0, text.find("node=${JOB_COMPLETION_INDEX"));
  }

  KubernetesSettings& settings_ = request_.launch.kubernetes;
};

TEST_F(KubernetesTest, TheJobSetIsAsWritten) {
  expect_golden("kubernetes_fsdp.yaml", jobset(Framework::fsdp));
  request_.platform = Platform::cpu;
  request_.spec.threads = 3;
  expect_golden("kubernetes_native.yaml", jobset(Framework::native));
}

TEST_F(KubernetesTest, TheDryRunCreatesFollowsAndDeletes) {
  const std::string text = plan(Framework::fsdp).by_hand;
  const size_t end = text.find("\nEND_OF_FILE");
  ASSERT_NE(end, std::string::npos);
  expect_golden("kubernetes_by_hand.sh", text.substr(end + 1));
}

TEST_F(KubernetesTest, EachVendorHasItsGpus) {
  EXPECT_NE(jobset(Framework::fsdp).find("nvidia.com/gpu: \"4\""), std::string::npos);
  request_.platform = Platform::amd;
  EXPECT_NE(jobset(Framework::fsdp).find("amd.com/gpu: \"4\""), std::string::npos);
  settings_.gpu_resource = "amd.com/gpu_half";
  EXPECT_NE(jobset(Framework::fsdp).find("amd.com/gpu_half: \"4\""), std::string::npos);
  request_.platform = Platform::cpu;
  EXPECT_EQ(jobset(Framework::native).find("/gpu: "), std::string::npos);
  EXPECT_EQ(jobset(Framework::native).find("gpu_half"), std::string::npos);
}

TEST_F(KubernetesTest, RanksStartAsTheFrameworkWants) {
  EXPECT_NE(start_script(Framework::fsdp).find("start=torchrun\n"), std::string::npos);
  EXPECT_NE(start_script(Framework::native).find("start=ranks\n"), std::string::npos);
  EXPECT_NE(start_script(Framework::fsdp).find("first=tprimat-train-tiny-"), std::string::npos);
  EXPECT_NE(start_script(Framework::fsdp).find("-node-0-0.tprimat-train-tiny-"), std::string::npos);
  request_.launch.master_address = "10.0.0.1";
  EXPECT_NE(start_script(Framework::fsdp).find("first=10.0.0.1\n"), std::string::npos);
}

TEST_F(KubernetesTest, RecordsGoThroughTheVolumeOrTheLog) {
  EXPECT_NE(file_of(plan(Framework::fsdp), "follow.sh").find("records=\nshared=yes\n"), std::string::npos);
  EXPECT_EQ(jobset(Framework::fsdp).find("name: run\n"), std::string::npos);
  settings_.volumes = {"claim:shared:/out:ro"};
  EXPECT_NE(file_of(plan(Framework::fsdp), "follow.sh").find("records=/out/runs/train_tiny/steps.jsonl\nshared=\n"),
            std::string::npos);
  EXPECT_NE(jobset(Framework::fsdp).find("mountPath: /out/runs/train_tiny\n"), std::string::npos);
}

TEST_F(KubernetesTest, WhatPodsWouldLackIsRefused) {
  request_.spec.data.dataset = "/corpus/wiki";
  EXPECT_NE(refusal(Framework::fsdp).find("the data set '/corpus/wiki' lies in no volume"), std::string::npos);
  request_.spec.data.dataset = "corpus/wiki";
  EXPECT_NE(refusal(Framework::fsdp).find("lies in no volume"), std::string::npos);
  request_.spec.data.dataset = "/data/wiki";
  EXPECT_EQ(refusal(Framework::fsdp), "");
  request_.spec.checkpoint.initial_weights = "/datasets/llama";
  EXPECT_NE(refusal(Framework::fsdp).find("the folder of initial weights '/datasets/llama'"), std::string::npos);
  request_.spec.checkpoint.initial_weights = "";
  request_.spec.checkpoint.directory = "saved";
  request_.spec.checkpoint.save_interval = 5;
  EXPECT_EQ(refusal(Framework::native), "");
  settings_.volumes = {"claim:shared:/out:ro", "claim:data:/data"};
  EXPECT_NE(refusal(Framework::native).find("the folder of checkpoints '/out/runs/train_tiny/saved'"),
            std::string::npos);
  request_.paths.folder = "/out/a\377b";
  EXPECT_NE(refusal(Framework::fsdp).find("a manifest cannot hold the path"), std::string::npos);
  request_.paths.folder = "/out/a:b";
  EXPECT_NE(refusal(Framework::fsdp).find("its path must not contain any of ':'"), std::string::npos);
  settings_.image = "";
  EXPECT_NE(refusal(Framework::fsdp).find("no image is named for the pods"), std::string::npos);
}

TEST_F(KubernetesTest, SecretsAreOnlyReferredTo) {
  request_.settings.environment = {{"WANDB_API_KEY", "written out"}};
  const std::string text = refusal(Framework::fsdp);
  EXPECT_NE(text.find("launch.kubernetes.secrets: {WANDB_API_KEY: NAME/KEY}"), std::string::npos) << text;
  EXPECT_EQ(text.find("written out"), std::string::npos);
  settings_.secrets["WANDB_API_KEY"] = "wandb/key";
  EXPECT_EQ(file_of(plan(Framework::fsdp), "jobset.yaml").find("written out"), std::string::npos);
}

TEST_F(KubernetesTest, WordsReachTheProgramAsTheyAre) {
  request_.settings.environment = {{"ODD", "$(HOME) a:b"}};
  EXPECT_NE(jobset(Framework::fsdp).find("\"$$(HOME) a:b\""), std::string::npos) << jobset(Framework::fsdp);
}

TEST_F(KubernetesTest, FilesThatAreTooLongAreRefused) {
  request_.spec.model.full_name = std::string(2'000'000, 'x');
  EXPECT_NE(refusal(Framework::native).find("a ConfigMap holds 1 MiB"), std::string::npos);
}

TEST(KubernetesName, FitsWhatTheClusterAccepts) {
  EXPECT_EQ(kubernetes_name("tprimat_train_cpu_native_tiny_6f2b91c0"), "tprimat-train-cpu-native-tiny-6f2b91c0");
  EXPECT_EQ(kubernetes_name("tprimat_Odd__Name__6f2b91c0"), "tprimat-odd-name-6f2b91c0");
  const std::string cut = kubernetes_name("tprimat_" + std::string(80, 'a') + "_6f2b91c0");
  EXPECT_EQ(cut.size(), 40u);
  EXPECT_TRUE(cut.ends_with("a-6f2b91c0"));
}

TEST(ManifestText, QuotesWhatYamlWouldReadAsSomethingElse) {
  const Json document = {
      {"plain", "registry/x-1"}, {"word", "yes"},      {"number", "10"},
      {"colon", "a: b"},         {"empty", ""},        {"list", Json::array()},
      {"lines", "a\n\n  b\n"},   {"blank", " a\nb\n"}, {"items", Json::array({"x", Json{{"k", 1}}})}};
  EXPECT_EQ(print_manifest(document),
            "plain: registry/x-1\nword: \"yes\"\nnumber: \"10\"\ncolon: \"a: b\"\nempty: \"\"\nlist: []\n"
            "lines: |\n  a\n\n    b\nblank: \" a\\nb\\n\"\nitems:\n  - x\n  - k: 1\n");
}

}  // namespace
}  // namespace tprimat::suite
