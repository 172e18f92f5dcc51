// Checks of `quern verify` that read the files only.

#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "verify.hpp"

namespace quern::tool {

CheckResult check_parameters(const VerifyContext& context) {
  const contract::Contract& contract = context.model().contract;
  std::uint64_t in_tensors = 0;
  for (const weights::TensorView& tensor : context.model().weights.tensors())
    in_tensors += std::uint64_t{tensor.rows} * tensor.columns;
  const std::uint64_t formula = contract::parameters_by_formula(contract);
  const bool equal = formula == in_tensors && formula == contract.counts.parameters_in_tensors &&
                     formula == contract.counts.parameters_by_formula;
  return {equal, base::cat(base::grouped(formula), " by formula, ", base::grouped(in_tensors), " in ",
                           context.model().weights.tensors().size(), " tensors, ",
                           base::grouped(contract.counts.parameters_in_tensors), " in the contract")};
}

CheckResult check_checksums(const VerifyContext& context) {
  context.model().weights.verify_checksums();   // throws: a damaged file is exit code 3
  return {true, base::cat("every section of ",
                          base::human_bytes(context.model().weights.file().bytes().size()), " matches")};
}

}  // namespace quern::tool
