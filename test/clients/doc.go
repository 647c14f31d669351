// Package clients runs programs that know nothing of Setpoint against the real binary:
// kubectl of three minor versions, Helm 3 and 4, stock kubelets of three, an operator made with
// controller-runtime, KWOK, and what client-go offers. They are built from the module
// proxy as their makers published them; run.sh builds them and says how to choose.
//
// It is a module of its own, so that the product carries none of their dependencies,
// and has no tests that could run without them: `make clients`.
package clients
