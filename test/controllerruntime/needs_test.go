package controllerruntime

// What the suites of controller-runtime import, so that this module requires it.
import (
	_ "github.com/go-logr/logr/funcr"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/gofuzz"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "github.com/onsi/gomega/gbytes"
	_ "github.com/onsi/gomega/ghttp"
	_ "github.com/onsi/gomega/gstruct"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "go.uber.org/goleak"
	_ "sigs.k8s.io/controller-runtime"

	_ "github.com/setpoint-io/setpoint/setpointtest/envtest"
)
