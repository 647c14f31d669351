# Two commands matter: `make dev` runs a cluster here, `make test` passes the tests.
SHELL := /bin/bash
.DEFAULT_GOAL := help
GO ?= go
BIN := bin/setpoint
# kubectl is built in and refuses to compare versions unless it has one: v0.37.2 of
# the libraries is Kubernetes v1.37.2.
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/client-go" { sub("v0", "v1", $$2); print $$2 }' go.mod)
LDFLAGS := -s -w -X k8s.io/client-go/pkg/version.gitVersion=$(KUBE_VERSION) -X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION)
# The product is static; only race-detecting tests need a C compiler.
export CGO_ENABLED := 0
# The same flags for product and tests, so that they share the build cache; no
# paths of the building machine, no asking of git, and no tables for debuggers, which
# are stripped anyway and are a twelfth of what compiling takes.
export GOFLAGS := -trimpath -buildvcs=false -gcflags=all=-dwarf=false

# The compiler takes a sixth less CPU time if it may leave four times the garbage.
COMPILE_GOGC := 400

COMPOSE := $(shell if docker compose version >/dev/null 2>&1; then echo docker compose; else echo docker-compose; fi)

.PHONY: help build env dev release vulnerabilities test long race check bench bench-compare bench-scale fuzz mutants mutants-generated attack consistency consistency-compose stress conformance critest csi gateway what-if differential lists statuses envtest envtest-suites envtest-compare manifests operators zoo sweep ui-test metrics clients beside versions vm findings generate compose-image compose-up compose-down fix clean FORCE

help: ## show this text
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

build: $(BIN) ## build bin/setpoint

$(BIN): FORCE
	@GO='$(GO)' GOGC=$(COMPILE_GOGC) deploy/build.sh $(BIN) '$(LDFLAGS)'

FORCE:

dev: build ## run a cluster on this machine (root: real containers)
	$(BIN) dev $(DEV_FLAGS)

release: ## static binaries for Linux in dist/, images, what they are made of (SBOM, licences), manual pages, completions, SHA256SUMS
	@GO='$(GO)' GOGC=$(COMPILE_GOGC) deploy/release.sh '$(LDFLAGS)'

vulnerabilities: ## known vulnerabilities of what is linked; asks the data base at vuln.go.dev, so it needs the internet
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.6.0 ./cmd/setpoint .

test: ## all tests, the long ones in their short form: pure, bubbles, scripts, the compose cluster if Docker is there
	deploy/test-setup.sh
	test/run.sh

long: ## every test in full, without the race detector: longer than make test
	deploy/test-setup.sh
	LONG=1 RACE=0 test/run.sh

race: build ## every test in full with the race detector, much longer than make test; or of some packages in short: PKG="./server ./agent/..."
	deploy/test-setup.sh
	$(if $(PKG),CGO_ENABLED=1 $(GO) test -race -short -vet=off $(PKG),RACE=full test/run.sh)

env: ## the flags of make for a shell, so that go test there finds what make compiled: eval of its output
	@echo "export CGO_ENABLED=$(CGO_ENABLED) GOFLAGS='$(GOFLAGS)'"

check: ## format, vet and the rules of the house
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run make fix'; exit 1; }
	$(GO) test -vet=off -count=1 ./internal/house
	$(GO) vet ./...
	$(GO) -C test/controllerruntime vet .
	$(GO) -C test/gateway vet ./...
	$(GO) -C test/csi vet ./...
	GOOS=darwin $(GO) vet . ./setpointtest/...
	$(GO) tool staticcheck ./... # as staticcheck.conf says
	$(GO) tool go-errorlint ./...

bench: build ## measure start, memory and reactions; beside the raw disk of the same run
	test/bench/run.sh

bench-compare: build ## measure two builds in turn and print the ratios: OLD=commit ROUNDS=5 WHAT="write read"
	OLD=$(OLD) ROUNDS=$(ROUNDS) WHAT="$(WHAT)" RESULTS=$(RESULTS) test/bench/compare.sh

bench-scale: build ## how costs grow with a cluster of simulated nodes: SIZES="125 250 500 1000" SERVERS=3 RESULTS=file
	SIZES="$(SIZES)" SERVERS=$(SERVERS) RESULTS=$(RESULTS) test/bench/scale.sh

consistency: build ## examine the servers under faults, and pods beside them: DURATION=5m SEED= FAULTS= LEADER_KILLS= LINGER= SERVERS=5 OTHER=file GAP_MAX=2s
	DURATION=$(DURATION) SEED=$(SEED) FAULTS=$(FAULTS) LEADER_KILLS=$(LEADER_KILLS) LINGER=$(LINGER) RATE=$(RATE) SERVERS=$(SERVERS) OTHER=$(OTHER) GAP_MAX=$(GAP_MAX) KEEP=$(KEEP) test/consistency.sh

consistency-compose: ## the same on the containers of make compose-up
	CLUSTER=compose DURATION=$(DURATION) SEED=$(SEED) FAULTS=$(FAULTS) KEEP=$(KEEP) test/consistency.sh

fuzz: ## arbitrary bytes to every decoder: FUZZTIME=1m for each target, FOCUS=regexp
	FUZZTIME=$(FUZZTIME) FOCUS='$(FOCUS)' test/fuzz.sh

mutants: ## put bugs into the store, and walls between pods and the node (root) away, and see which test catches each: FOCUS=store|walls|name,name
	$(GO) test -count=1 -v -timeout 120m -tags mutants -run '^(TestFocusIsKnown|TestEvery(MutantIsCaught|WallIsAttacked))$$' ./test/mutants

mutants-generated: ## small changes of the store that nobody chose, a sample by a seed, and which test catches each: SEED=1 N=100 FOCUS=raftstore/state JUDGES=3 ONLY=regexp TABLE=file
	$(GO) run ./test/mutants/generated -seed $(or $(SEED),1) -n $(or $(N),100) -focus '$(FOCUS)' -judges $(or $(JUDGES),3) -only '$(ONLY)' -o '$(TABLE)'

attack: build ## one tenant's execs and watches on a real node beside another tenant's requests, measured (root): EXECS=1200 WATCHES=1000
	NODEFAULTS_EXECS=$(or $(EXECS),1200) NODEFAULTS_WATCHES=$(or $(WATCHES),1000) SETPOINT_TEST_BINARY=$(CURDIR)/$(BIN) \
		$(GO) test -count=1 -v -timeout 30m -run '^TestFaults$$/^one_tenant' ./test/nodefaults

stress: ## a test many times beside busy processors and disks: PKG=./agent/pods RUN=regexp COUNT=20 LOAD=2
	PKG='$(PKG)' RUN='$(RUN)' COUNT='$(COUNT)' LOAD='$(LOAD)' RACE='$(RACE)' TEST_FLAGS='$(TEST_FLAGS)' test/stress.sh

conformance: build ## the upstream conformance suite: FOCUS=regexp SKIP= CLASS=A,B NODES=3 MUST_PASS= UPDATE= LIST=further
	LIST='$(LIST)' FOCUS='$(FOCUS)' SKIP='$(SKIP)' TIMEOUT=$(TIMEOUT) CLASS=$(CLASS) MUST_PASS=$(MUST_PASS) UPDATE=$(UPDATE) PROCS=$(PROCS) SERVERS=$(SERVERS) NODES=$(NODES) KEEP=$(KEEP) test/conformance/run.sh

critest: build ## upstream's suite for container runtimes against setpoint cri (root): FOCUS=regexp SKIP= UPDATE=1
	FOCUS='$(FOCUS)' SKIP='$(SKIP)' UPDATE=$(UPDATE) KEEP=$(KEEP) STATIC=$(STATIC) test/critest/run.sh

csi: build ## upstream's suite for CSI drivers, with upstream's sidecars (root): FOCUS=regexp SKIP= UPDATE=1
	FOCUS='$(FOCUS)' SKIP='$(SKIP)' TIMEOUT=$(TIMEOUT) MUST_PASS=$(MUST_PASS) UPDATE=$(UPDATE) PROCS=$(PROCS) KEEP=$(KEEP) test/csi/run.sh

gateway: build ## upstream's suite for the Gateway API against bin/setpoint (root): RUN=HTTPRouteWeight UPDATE=1
	RUN=$(RUN) UPDATE=$(UPDATE) KEEP=$(KEEP) test/gateway/run.sh

differential: ## upstream's controllers and ours on the same generated worlds: WORLDS=200 SEED=1 KIND=job RUNS=500
	cd test/differential && $(GO) test -count=1 -v -timeout 60m -run 'TestWorlds/($(KIND))' . -worlds $(or $(WORLDS),200) -seed $(or $(SEED),1) -runs $(or $(RUNS),500)

lists: ## upstream's lists beside ours: gates, plugins, flags, roles, discovery, columns, stable metrics, reasons of events, health checks
	cd test/differential && $(GO) mod download && $(GO) test -count=1 -v ./lists

statuses: ## every status that ours publish on the way is one that upstream's controllers could have: 1,000 worlds of each kind
	$(MAKE) differential WORLDS=$(or $(WORLDS),1000) SEED=$(SEED) RUNS=$(RUNS) KIND='^(deployment|replicaset|statefulset|daemonset|job|cronjob|disruption|autoscaler)$$'

sweep: ## every fault at every write of the controllers' scenarios, as a table: FOCUS='daemon set' PAIRS=1
	$(GO) test -count=1 -timeout 60m -run '^TestSweep$$' ./controllers -sweep -sweep.scenario '$(FOCUS)' $(if $(PAIRS),-sweep.pairs)

what-if: ## generated situations, each asked of setpoint what-if and then done for real, as a table: SITUATIONS=100
	SETPOINT_SITUATIONS=$(or $(SITUATIONS),100) $(GO) test -count=1 -timeout 60m -v -run '^TestReality$$' ./cmd/setpoint/whatif

ui-test: build ## the page of `setpoint ui` in Debian's Chromium (apt install chromium), on simulated nodes: SHOTS=folder for pictures
	SETPOINT=$(abspath $(BIN)) SETPOINT_SHOTS=$(abspath $(SHOTS)) $(GO) -C test/ui test -count=1 -v -timeout 20m .

metrics: ## the rules of kubernetes-mixin, asked by Prometheus' own engine of a running server
	cd test/metrics && $(GO) test -count=1 -v .

envtest: build ## an operator made with controller-runtime, in setpointtest, and envtest with this binary and in process
	$(GO) -C setpointtest/envtest test -count=1 ./...
	KUBEBUILDER_ASSETS=$$($(BIN) envtest-assets) $(GO) -C test/envtest test -count=1 .

envtest-suites: build ## controller-runtime's own suites, unchanged and with one import changed: SUITES=client,cache UPDATE=1
	KUBEBUILDER_ASSETS=$$($(BIN) envtest-assets) $(GO) -C test/controllerruntime test -count=1 -v -timeout 60m . -suites '$(SUITES)' $(if $(UPDATE),-update)

envtest-compare: build ## the same test with envtest, with this binary in its place, and in setpointtest: medians (ROUNDS=11)
	ROUNDS=$(ROUNDS) test/envtest/compare.sh

manifests: build ## the manifests of other projects, sent to upstream's API server and to this one: what differs (NAME=regexp)
	@NAME='$(NAME)' test/envtest/manifests.sh

operators: ## an operator of others, JobSet, in a fork of setpointtest; and the Go snippets of the pages
	$(GO) -C test/operators test -count=1 .

zoo: build ## own suites of operators and clients of others, here and on upstream's API server, and docs/software.md (root): NAME=kueue,kro KEEP=1 ALONE=1
	$(GO) run ./test/zoo -setpoint $$($(BIN) envtest-assets --dir $(CURDIR)/bin/envtest) $(if $(ALONE),,-upstream $$(test/envtest/upstream/build.sh)) -name '$(NAME)' $(if $(KEEP),-keep)

clients: build ## kubectl, Helm, KWOK and an operator of others against bin/setpoint: RUN=regexp CLIENTS=dir
	RUN='$(RUN)' CLIENTS=$(CLIENTS) TEST_FLAGS='$(TEST_FLAGS)' test/clients/run.sh

beside: ## what the agent finds of ufw, firewalld and iptables, if they are installed (root)
	test/beside/run.sh

versions: build ## roll three machines from older releases to this one, back and forward, under load (root): VERSIONS="commit..." RUN=regexp
	VERSIONS='$(VERSIONS)' RUN='$(RUN)' test/versions.sh

vm: ## tests on Debian's kernel in qemu: KERNEL=backports CGROUP=v2|v1|hybrid LSM=selinux ARCH=arm64 ONLY=regexp TESTS=regexp
	KERNEL=$(KERNEL) CGROUP=$(CGROUP) LSM=$(LSM) ARCH=$(ARCH) ONLY='$(ONLY)' TESTS='$(TESTS)' TIME_LIMIT=$(TIME_LIMIT) KEEP=$(KEEP) test/vm/run.sh

findings: ## surprises about libraries, each shown once more, outside CI: FOCUS=regexp
	FOCUS='$(FOCUS)' test/findings.sh

generate: ## remake generated code and data; a second run changes nothing
	deploy/generate-setup.sh
	$(GO) generate ./...

compose-image: build
	docker build -q -t setpoint:dev -f deploy/Dockerfile .

compose-up: compose-image ## three servers and three agents in Docker: PREFIX=two- PORTS=7441,7442,7443 for one more
	PREFIX='$(PREFIX)' PORTS='$(PORTS)' deploy/compose-up.sh "$(COMPOSE)"

compose-down: ## end that cluster and delete its data: PREFIX=two-
	PREFIX='$(PREFIX)' PORTS='$(PORTS)' deploy/compose-down.sh "$(COMPOSE)"

fix: ## format everything
	gofmt -w $$(git ls-files '*.go')

clean: ## remove what was built
	rm -rf bin dist .compose*
