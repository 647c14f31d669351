package main

import "time"

// readsACache is why a spec of Flux fails now and then.
const readsACache = "reads from a cache what it has just written; it failed in 3 of 6 runs on upstream's, and in 3 of 10 here"

// Why a spec of kro fails now and then.
const (
	kroCollection = "test/integration/suites/core: Collection Watch "
	updatesOnce   = "writes a spec once with the version that it has read, and gives up if kro has written the status meanwhile: " +
		"refused so in 1 of 6 runs on upstream's, and in 1 of 24 here"
)

// Why specs of LeaderWorkerSet fail here.
const (
	lwsController = "test/integration/controllers: LeaderWorkerSet controller leaderWorkerSet creating or updating "
	marksFirst    = "LWS has to see a pod without a node marked before it is gone, and the two writes are closer together here: a race of the suite"
	marksOne      = marksFirst + ", lost in 10 of 12 runs here, and in none of 11 on upstream's"
	marksTwo      = marksFirst + ", lost in 6 of 12 runs here, and in 3 of 11 on upstream's"
	labelsFirst   = "the suite labels leader pods with their StatefulSet's revision as soon as it has changed the size; those that it reaches " +
		"before LWS has given the StatefulSet the new one keep the old one: a race of the suite, lost in 4 of 8 runs here"
	writesOnce  = "writes a status once with the version that it has read, and gives up if LWS has written meanwhile; fails on upstream's too"
	passedAgain = "failed once and passed when it ran again"
)

// addsLate is why a spec of multicluster-runtime fails now and then.
const addsLate = "asks for a cluster at once of a provider that was added to a running manager, and nothing before it waits for that one: " +
	"not found in 2 of 4 runs here"

// Why specs of Kubeflow's trainer fail now and then.
const (
	trainerDeletes = "can be deleted once referenced TrainJob is deleted"
	trainerRuntime = "test/integration/controller: TrainingRuntime controller when Reconcile TrainingRuntime TrainingRuntime "
	trainerCluster = "test/integration/controller: ClusterTrainingRuntime controller when Reconcile ClusterTrainingRuntime ClusterTrainingRuntime "
	trainerJob     = "test/integration/webhooks: TrainJob Webhook when Creating TrainJob Validate TrainJob on creation Should "
	readsRuntime   = "the suite writes a runtime and at once a job that names it, whose webhook reads the runtime from a cache; after a failure the " +
		"specs that follow in order do not run: lost in 3 of 13 runs here, and in 3 of 12 on upstream's"
)

// because gives one reason to several specs.
func because(reason string, specs ...string) map[string]string {
	reasons := map[string]string{}
	for _, spec := range specs {
		reasons[spec] = reason
	}
	return reasons
}

// recipes are the suites. One comes in when its packages have compiled and run.
var recipes = []recipe{
	{
		name: "approver-policy", module: "github.com/cert-manager/approver-policy", version: "v0.28.0", raised: kubernetes137,
		beside:   map[string]string{"build/cert-manager": "github.com/cert-manager/cert-manager@v1.21.2"},
		packages: []string{"pkg/internal/approver/manager", "pkg/internal/approver/manager/predicate", "pkg/internal/controllers/test"},
		env:      []string{"CERT_MANAGER_CRDS=$MODULE/build/cert-manager/deploy/crds"}, atLeast: 97,
	},
	{
		name: "cluster-api", module: "sigs.k8s.io/cluster-api", version: "v1.14.2", nested: []string{"api"}, ownPaths: true,
		packages: []string{
			"internal/util/ssa/test", "util/patch/test", "controllers/crdmigrator", "core/reconcilers/clusterclass",
			"core/reconcilers/clusterresourceset", "core/reconcilers/machineset",
		}, atLeast: 329,
	},
	{
		name: "cluster-api-kubeadm", module: "sigs.k8s.io/cluster-api", version: "v1.14.2", nested: []string{"api"}, ownPaths: true,
		packages: []string{"bootstrap/kubeadm/reconcilers/kubeadmconfig", "controlplane/kubeadm/pkg"}, atLeast: 323,
	},
	{
		name: "controller-runtime", module: "sigs.k8s.io/controller-runtime", version: "v0.25.2",
		packages: []string{"pkg/client", "pkg/cache", "pkg/manager", "pkg/webhook"}, atLeast: 773,
	},
	{
		name: "controller-runtime-controllers", module: "sigs.k8s.io/controller-runtime", version: "v0.25.2", raised: kubernetes137,
		packages: []string{
			"pkg/builder", "pkg/cluster", "pkg/controller", "pkg/controller/controllerutil", "pkg/handler", "pkg/internal/controller",
			"pkg/internal/recorder", "pkg/reconcile", "pkg/source", "pkg/client/apiutil", "pkg/metrics/filters",
		}, atLeast: 405,
	},
	{
		name: "elastic-cloud", module: "github.com/elastic/cloud-on-k8s/v3", version: "v3.5.0", raised: kubernetes136,
		ownPaths: true, tags: "integration",
		packages: []string{
			"pkg/controller/common/certificates", "pkg/controller/common/watches", "pkg/controller/elasticsearch/driver/shared",
			"pkg/controller/kibana", "pkg/controller/license", "pkg/controller/license/trial",
		}, atLeast: 336,
	},
	{
		name: "envoy-gateway", module: "github.com/envoyproxy/gateway", version: "v1.6.0", tags: "celvalidation",
		packages: []string{"test/cel-validation"}, atLeast: 227,
	},
	{
		name: "external-secrets", module: "github.com/external-secrets/external-secrets", version: "v0.16.2", raised: kubernetes133,
		packages: []string{
			"pkg/controllers/clusterexternalsecret", "pkg/controllers/clusterpushsecret", "pkg/controllers/crds",
			"pkg/controllers/externalsecret", "pkg/controllers/pushsecret", "pkg/controllers/secretstore", "pkg/controllers/webhookconfig",
		}, atLeast: 178,
	},
	{
		name: "flux-auth", module: "github.com/fluxcd/pkg/auth", version: "v0.55.0", ownPaths: true, raised: kubernetes136,
		beside: map[string]string{
			"../apis/meta": "github.com/fluxcd/pkg/apis/meta@v1.31.0", "../cache": "github.com/fluxcd/pkg/cache@v0.14.0",
			"../ssh": "github.com/fluxcd/pkg/ssh@v0.25.0",
		},
		packages: []string{".", "generic"}, atLeast: 88,
	},
	{
		name: "flux-kustomize", module: "github.com/fluxcd/pkg/kustomize", version: "v1.41.0", raised: kubernetes137,
		beside: map[string]string{
			"../apis/kustomize": "github.com/fluxcd/pkg/apis/kustomize@v1.21.0", "../envsubst": "github.com/fluxcd/pkg/envsubst@v1.8.0",
			"../sourceignore": "github.com/fluxcd/pkg/sourceignore@v0.19.0",
		},
		packages: []string{"."}, atLeast: 58,
	},
	{
		name: "flux-runtime", module: "github.com/fluxcd/pkg/runtime", version: "v0.89.0",
		beside: map[string]string{
			"../apis/acl": "github.com/fluxcd/pkg/apis/acl@v0.9.0", "../apis/event": "github.com/fluxcd/pkg/apis/event@v0.20.0",
			"../apis/kustomize": "github.com/fluxcd/pkg/apis/kustomize@v1.13.0", "../apis/meta": "github.com/fluxcd/pkg/apis/meta@v1.22.0",
		},
		packages: []string{"patch", "cel", "events", "secrets", "acl"}, atLeast: 258,
		reasons: map[string]string{
			"secrets: TestApply/apply_secret_that_merges_existing_mutable_secret":     readsACache,
			"secrets: TestApply/apply_secret_that_replaces_existing_immutable_secret": readsACache,
		},
	},
	{
		name: "flux-ssa", module: "github.com/fluxcd/pkg/ssa", version: "v0.78.0",
		packages: []string{".", "jsondiff"}, atLeast: 256,
	},
	{
		name: "frr-k8s", module: "github.com/metallb/frr-k8s", version: "v0.0.21", raised: kubernetes133,
		packages: []string{"internal/controller", "frr-tools/status/controller"}, atLeast: 83,
	},
	{
		name: "gatekeeper", module: "github.com/open-policy-agent/gatekeeper/v3", version: "v3.23.1", ownPaths: true, raised: kubernetes136,
		packages: []string{
			"pkg/controller/config", "pkg/controller/connectionstatus", "pkg/controller/export", "pkg/controller/mutators/core",
			"pkg/readiness", "pkg/watch",
		}, atLeast: 142,
	},
	{
		name: "helm-operator-plugins", module: "github.com/operator-framework/helm-operator-plugins", version: "v0.8.0", raised: kubernetes133,
		packages: []string{"pkg/client", "pkg/manager", "pkg/reconciler", "pkg/storage"}, atLeast: 185,
	},
	{
		name: "hierarchical-namespaces", module: "sigs.k8s.io/hierarchical-namespaces", version: "v1.1.0",
		packages: []string{
			"internal/anchor", "internal/hierarchyconfig", "internal/hncconfig", "internal/hrq", "internal/namespace", "internal/objects",
		}, atLeast: 320,
	},
	{
		name: "inference-extension", module: "sigs.k8s.io/gateway-api-inference-extension", version: "v1.3.0", raised: kubernetes134,
		packages: []string{"test/integration/epp"}, atLeast: 18,
	},
	{
		name: "ipam-in-cluster", module: "sigs.k8s.io/cluster-api-ipam-provider-in-cluster", version: "v1.0.3", raised: kubernetes133,
		packages: []string{"internal/controllers"}, atLeast: 58,
	},
	{
		name: "issuer-lib", module: "github.com/cert-manager/issuer-lib", version: "v0.10.0", raised: kubernetes136,
		beside:   map[string]string{"build/crds": "github.com/cert-manager/cert-manager@v1.19.3/deploy/crds"},
		packages: []string{"controllers"}, env: []string{"CERT_MANAGER_CRDS=$MODULE/build/crds", "SIMPLE_CRDS=$MODULE/internal/testapi/crds"},
		atLeast: 119,
	},
	{
		name: "jobset", module: "sigs.k8s.io/jobset", version: "v0.10.1",
		packages: []string{"test/integration/controller", "test/integration/webhook"}, atLeast: 78,
	},
	{
		name: "karpenter", module: "sigs.k8s.io/karpenter", version: "v1.14.0",
		packages: []string{
			"pkg/apis/v1", "pkg/controllers/nodepool/hash", "pkg/controllers/node/health", "pkg/controllers/node/termination",
			"pkg/controllers/nodeclaim/lifecycle",
		}, atLeast: 318,
	},
	{
		name: "katib", module: "github.com/kubeflow/katib", version: "v0.19.0", raised: kubernetes134,
		packages: []string{"pkg/controller.v1beta1/experiment", "pkg/controller.v1beta1/suggestion", "pkg/controller.v1beta1/trial"}, atLeast: 12,
	},
	{
		name: "keda", module: "github.com/kedacore/keda/v2", version: "v2.21.0", ownPaths: true, raised: kubernetes136,
		packages: []string{"apis/keda/v1alpha1", "apis/eventing/v1alpha1"}, atLeast: 215,
	},
	{
		name: "kro", module: "github.com/kubernetes-sigs/kro", version: "v0.9.4",
		packages: []string{"test/integration/suites/core"}, atLeast: 144, limit: 20 * time.Minute,
		reasons: map[string]string{kroCollection + "should not react to externally created resources after collection shrinks": updatesOnce},
	},
	{
		name: "kuberay", module: "github.com/ray-project/kuberay/ray-operator", version: "v1.5.0",
		packages: []string{"controllers/ray", "pkg/webhooks/v1"}, atLeast: 340,
	},
	{
		name: "lws", module: "sigs.k8s.io/lws", version: "v0.8.0",
		packages: []string{"test/integration/controllers", "test/integration/webhooks"}, atLeast: 122,
		reasons: map[string]string{
			lwsController + "Pod restart will delete the pod group when restart policy is RecreateGroupOnPodRestart": marksOne,

			lwsController + "leader with RecreateGroupOnPodRestart only gets restarted once during rolling update": marksTwo,

			lwsController + "resize should update the size of the replicas": labelsFirst,

			lwsController + "Test default progressing state": writesOnce,

			lwsController + "rolling update with maxSurge set": passedAgain,
			lwsController + "if a leaderSts exists, but a matching controllerRevision doesn't, " +
				"it will create one that matches the leaderSts": passedAgain,
		},
	},
	{
		name: "metallb", module: "go.universe.tf/metallb", version: "v0.15.3",
		packages: []string{"internal/k8s/controllers"}, atLeast: 42,
	},
	{
		name: "multicluster-runtime", module: "sigs.k8s.io/multicluster-runtime", version: "v0.23.1",
		packages: []string{
			"pkg/builder", "pkg/manager/coordinator/sharded", "providers/clusters", "providers/kubeconfig", "providers/multi", "providers/namespace",
		}, atLeast: 74,
		reasons: map[string]string{"providers/multi: Provider Multi queries island on cloud2 via a multi-cluster index": addsLate},
	},
	{
		name: "operator-lifecycle-manager", module: "github.com/operator-framework/operator-lifecycle-manager", version: "v0.38.0",
		raised: kubernetes134, packages: []string{"pkg/controller/operators", "pkg/controller/operators/openshift"},
		beside: map[string]string{"vendor/github.com/openshift/api": "github.com/openshift/api@v0.0.0-20221021112143-4226c2167e40"}, atLeast: 57,
	},
	{
		name: "trainer", module: "github.com/kubeflow/trainer/v2", version: "v2.0.0", raised: kubernetes133,
		beside: map[string]string{
			"manifests/external-crds/jobset-operator":   "sigs.k8s.io/jobset@v0.8.2/config/components/crd/bases",
			"manifests/external-crds/scheduler-plugins": "sigs.k8s.io/scheduler-plugins@v0.30.6/manifests/coscheduling",
		},
		packages: []string{"test/integration/controller", "test/integration/webhooks"}, atLeast: 36,
		reasons: because(readsRuntime, trainerRuntime+trainerDeletes, trainerCluster+trainerDeletes,
			trainerJob+"fail in creating trainJob with pre-trained model config when referencing a trainingRuntime without an initializer",
			trainerJob+"fail in creating trainJob with dataset initializer when referencing a trainingRuntime without an initializer",
			trainerJob+"succeed in creating trainJob with dataset initializer when referencing a ClusterTrainingRuntime with an initializer",
			trainerJob+"fail in creating trainJob with invalid trainer config for mpi runtime",
			trainerJob+"fail in creating trainJob with invalid trainer config for torch runtime",
			trainerJob+"succeed in creating trainJob with valid trainer config for torch runtime",
			trainerJob+"fail in creating trainJob with trainer config having envs with reserved env names"),
	},
	{
		name: "trust-manager", module: "github.com/cert-manager/trust-manager", version: "v0.25.0",
		packages: []string{"test/integration/bundle", "test/integration/clusterbundle"}, atLeast: 166,
	},
	{
		name: "virtual-kubelet", module: "github.com/virtual-kubelet/virtual-kubelet", version: "v1.14.1", raised: kubernetes137,
		packages: []string{"node"}, run: "^TestEnvtest$", flags: []string{"-envtest"}, atLeast: 3,
	},
}

// notHad are suites of which there is no recipe, since they could not be fetched or compiled when somebody tried.
var notHad = []result{
	{Name: "flux-kustomize-controller", Version: "v1.10.1", NotRun: wantsCrypto},
	{Name: "flux-source-controller", Version: "v1.10.1", NotRun: wantsCrypto},
	{Name: "volcano", Version: "v1.13.0", NotRun: "cannot be fetched: the module proxy does not give it out"},
}

const wantsCrypto = "wants github.com/fluxcd/pkg/apis/crypto v0.5.0, which the module proxy does not give out"
