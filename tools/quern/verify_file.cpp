// Checks of `quern verify` that read the files only.

#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "verify.hpp"

namespace quern::tool {

CheckResult check_parameters(const VerifyContext& context) {
  const contract::Contract& contract = context.model().contract;
  std::uint64_t in_tensors = 0;
  std::size_t computed = 0;  // tables made from the contract are no parameters
  for (const contract::TensorSpec& spec : contract::expected_tensors(contract)) {
    computed += spec.computed;
    in_tensors += spec.computed ? 0 : spec.parameters();
  }
  const std::uint64_t formula = contract::parameters_by_formula(contract);
  const bool equal = formula == in_tensors && formula == contract.counts.parameters_in_tensors &&
                     formula == contract.counts.parameters_by_formula;
  return {equal, base::cat(base::grouped(formula), " by formula, ", base::grouped(in_tensors), " in ",
                           context.model().weights.tensors().size() - computed, " tensors, ",
                           base::grouped(contract.counts.parameters_in_tensors), " in the contract")};
}

CheckResult check_checksums(const VerifyContext& context) {
  context.model().weights.verify_checksums();   // throws: a damaged file is exit code 3
  return {true, base::cat("every section of ",
                          base::human_bytes(context.model().weights.file().bytes().size()), " matches")};
}

}  // namespace quern::tool
