#include <algorithm>
#include <cmath>
#include <map>

#include "spec/model_catalogue.h"
#include "unit/compare/expert_trainings.h"

// One line of a row of the table each.
namespace tprimat::results::expert {
namespace {

void balance(Training& t) {
  ParallelismConfig& p = t.facts.parallelism_config;
  TrainingConfig& c = t.facts.training_config;
  const int64_t sharing = *p.tensor_model_parallel_size * *p.pipeline_model_parallel_size * *p.context_parallel_size;
  p.data_parallel_size = *c.num_gpus / sharing;
  p.gradient_accumulation_steps = *c.global_batch_size / (*c.micro_batch_size * *p.data_parallel_size);
}

Edit balanced(const std::function<void(Training&)>& change) {
  return [=](Training& t) { change(t), balance(t); };
}

StepSeries& steps_of(RunResult& r) {
  if (!r.steps) r.steps.emplace();
  return *r.steps;
}

// The last of every `interval` values.
std::vector<double> thinned(const std::vector<double>& values, int64_t interval) {
  std::vector<double> kept;
  for (auto i = static_cast<size_t>(interval); i <= values.size(); i += static_cast<size_t>(interval))
    kept.push_back(values[i - 1]);
  return kept;
}

std::vector<double> means_of(const std::vector<double>& values, int64_t interval) {
  std::vector<double> means;
  for (auto end = static_cast<size_t>(interval); end <= values.size(); end += static_cast<size_t>(interval)) {
    double sum = 0;
    for (size_t i = end - static_cast<size_t>(interval); i < end; ++i) sum += values[i];
    means.push_back(sum / static_cast<double>(interval));
  }
  return means;
}

void keep_keys(Json& json, const std::vector<std::string>& keys) {
  Json kept = Json::object();
  for (const std::string& key : keys)
    if (json.contains(key)) kept[key] = json[key];
  json = kept;
}

}  // namespace

Edit speed(double factor) {
  return [=](Training& t) { t.flops_per_second *= factor; };
}
Edit noisy(double of_step, double of_run) {
  return [=](Training& t) { t.noise = of_step, t.run_spread = of_run; };
}
Edit runs(int count) {
  return [=](Training& t) { t.runs = count; };
}
Edit steps(int64_t count) {
  return [=](Training& t) { t.steps = count; };
}

Edit model(const std::string& catalogue_name, const std::string& written_name) {
  return [=](Training& t) {
    ModelInfo& m = t.facts.model_info;
    m.shape = find_model(catalogue_name).value();
    m.name = written_name, m.full_name = m.shape->full_name;
    m.num_parameters = count_parameters(*m.shape).total();
  };
}
Edit shape(const std::function<void(ModelSpec&)>& change) {
  return [=](Training& t) {
    change(*t.facts.model_info.shape);
    t.facts.model_info.num_parameters = count_parameters(*t.facts.model_info.shape).total();
  };
}
Edit batch(int64_t global) {
  return balanced([=](Training& t) { t.facts.training_config.global_batch_size = global; });
}
Edit micro_batch(int64_t size) {
  return balanced([=](Training& t) { t.facts.training_config.micro_batch_size = size; });
}
Edit sequence_length(int64_t tokens) {
  return [=](Training& t) { t.facts.training_config.sequence_length = tokens; };
}
Edit layout(int64_t tensor, int64_t pipeline, int64_t data, int64_t context) {
  return balanced([=](Training& t) {
    ParallelismConfig& p = t.facts.parallelism_config;
    p.tensor_model_parallel_size = tensor, p.pipeline_model_parallel_size = pipeline;
    p.context_parallel_size = context;
    t.facts.training_config.num_gpus = t.facts.gpu_info.device_count = tensor * pipeline * data * context;
  });
}
Edit devices(int64_t count) {
  return balanced([=](Training& t) { t.facts.training_config.num_gpus = t.facts.gpu_info.device_count = count; });
}

Edit facts(const std::function<void(RunResult&)>& change) {
  return [=](Training& t) { change(t.facts); };
}
Edit training(const std::function<void(TrainingConfig&)>& change) {
  return [=](Training& t) { change(t.facts.training_config); };
}
Edit optimizer(const std::string& name) {
  return training([=](TrainingConfig& c) { c.optimizer = name; });
}
Edit schedule(const std::string& name) {
  return training([=](TrainingConfig& c) { c.schedule = name; });
}
Edit device(const std::string& name) {
  return [=](Training& t) { t.facts.gpu_info.device_name = name; };
}
Edit printed(std::initializer_list<Setting> settings) {
  return [all = std::vector<Setting>(settings)](Training& t) {
    if (!t.facts.effective_config) t.facts.effective_config.emplace();
    for (const auto& [key, value] : all) (*t.facts.effective_config)[key] = value;
  };
}
Edit lora(int64_t trainable_parameters) {
  return facts([=](RunResult& r) {
    r.model_info.trainable_parameters = trainable_parameters;
    r.memory_metrics.peak_memory_allocated_gb = 34.0;
  });
}
Edit skipped_updates(int64_t count) {
  return series([=](RunResult& r) {
    r.skipped_updates = count;
    r.events.emplace();
    for (int64_t i = 0; i < count; ++i)
      r.events->push_back({EventKind::skipped_update, {}, i + 1, {}, {}, {}, "overflow"});
    if (count > 0) r.event_counts = std::map<EventKind, int64_t>{{EventKind::skipped_update, count}};
  });
}
Edit power(double watts, const std::string& source) {
  return [=](Training& t) { t.watts = watts, t.power_source = source; };
}
Edit price(double usd_per_hour) {
  return [=](Training& t) { t.usd_per_hour = usd_per_hour; };
}
Edit shape_unknown(int64_t parameters) {
  return series([=](RunResult& r) {
    r.model_info.shape.reset();
    r.model_info.num_parameters = parameters > 0 ? std::optional(parameters) : std::nullopt;
  });
}

Edit each_run(const std::function<void(RunResult&, int run)>& change) {
  return [=](Training& t) { t.series_edits.push_back(change); };
}
Edit series(const std::function<void(RunResult&)>& change) {
  return each_run([=](RunResult& r, int) { change(r); });
}
Edit last_run(const std::function<void(RunResult&)>& change) {
  return [=](Training& t) {
    const int last = t.runs;
    t.series_edits.push_back([=](RunResult& r, int run) {
      if (run == last) change(r);
    });
  };
}

Edit slow_every(int64_t interval, double factor, std::optional<StepLabel> label) {
  return series([=](RunResult& r) {
    for (int64_t step = interval; step <= std::ssize(r.step_times); step += interval) {
      r.step_times[static_cast<size_t>(step - 1)] *= factor;
      if (label) steps_of(r).labelled.push_back({step, *label});
    }
  });
}
Edit logged_every(int64_t interval) {
  return series([=](RunResult& r) {
    r.step_times = means_of(r.step_times, interval);
    for (auto* values : {&r.loss_values, &r.learning_rates, &r.grad_norms}) *values = thinned(*values, interval);
    StepSeries& steps = steps_of(r);
    steps.numbers.emplace();
    for (size_t i = 1; i <= r.step_times.size(); ++i) steps.numbers->push_back(static_cast<int64_t>(i) * interval);
    steps.mean_of = std::vector<int64_t>(r.step_times.size(), interval);
    r.source.format = "megatron", r.source.step_time = TimeSource::printed;
  });
}
Edit rounded_to(double seconds) {
  return series([=](RunResult& r) {
    for (double& time : r.step_times) time = std::round(time / seconds) * seconds;
  });
}
Edit with_clock(double seconds_between_steps, double clock_speed) {
  return series([=](RunResult& r) {
    double now = 1'772'400'000;
    r.reported.emplace().unix_time.emplace();
    for (const double time : r.step_times)
      r.reported->unix_time->push_back(now += (time + seconds_between_steps) * clock_speed);
    steps_of(r);  // as a log's result has it
    r.source.format = "megatron", r.source.step_time = TimeSource::printed;
  });
}
Edit no_loss() {
  return series([](RunResult& r) { r.loss_values.clear(); });
}
Edit no_learning_rates() {
  return series([](RunResult& r) { r.learning_rates.clear(); });
}
Edit loss_from(int64_t step, const std::function<double(double loss, int64_t step)>& change) {
  return series([=](RunResult& r) {
    for (int64_t s = step; s <= std::ssize(r.loss_values); ++s)
      r.loss_values[static_cast<size_t>(s - 1)] = change(r.loss_values[static_cast<size_t>(s - 1)], s);
  });
}

Edit file(const std::function<void(Json&)>& change) {
  return [=](Training& t) { t.file_edits.push_back([=](Json& json, int) { change(json); }); };
}
Edit older_file() {
  return file([](Json& json) {
    json["raw_step_times"] = json["step_times"];
    keep_keys(json, {"platform", "gpu_info", "timestamp", "training_config", "parallelism_config",
                     "performance_metrics", "memory_metrics", "raw_step_times", "loss_values", "learning_rates"});
    json["training_config"].erase("recompute");
  });
}
Edit averages_only() {
  return [](Training& t) {
    older_file()(t);
    file([](Json& json) { json.erase("raw_step_times"); })(t);
  };
}
Edit copy_of_reference() {
  return [](Training& t) { t.seed = 1; };
}
Edit one_run_thrice(const std::function<void(RunResult&, int run)>& disguise) {
  return [=](Training& t) {
    t.runs = 3, t.repeats_first_run = true;
    each_run(disguise)(t);
  };
}

}  // namespace tprimat::results::expert
