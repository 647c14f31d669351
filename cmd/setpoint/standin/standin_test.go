package standin

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
	"github.com/setpoint-io/setpoint/internal/freeport"
)

func TestCalled(t *testing.T) {
	for arg0, want := range map[string]string{
		"/assets/etcd": Etcd, "kube-apiserver": APIServer, "./kubectl": Kubectl, "setpoint": "", "/x/etcdctl": "", "": "",
	} {
		if got := Called(arg0); got != want {
			t.Errorf("%q: %q", arg0, got)
		}
	}
}

// TestFlags: what is not honoured is named or refused, and help lists what envtest looks for.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		program     string
		args        []string
		loops       string
		says, fails string
	}{
		"help of etcd":       {program: Etcd, args: []string{"--help"}, says: "--unsafe-no-fsync"},
		"help":               {program: APIServer, args: []string{"--help"}, says: "--client-ca-file"},
		"unknown flag":       {program: APIServer, args: []string{"--max-requests-inflight=5", "--cert-dir=" + dir}, says: "setpoint has no --max-requests-inflight: it has no effect", fails: "apiserver.crt"},
		"authorization":      {program: APIServer, args: []string{"--authorization-mode=AlwaysAllow"}, fails: `setpoint has RBAC and Node, not "AlwaysAllow"`},
		"idle flag":          {program: APIServer, args: []string{"--etcd-servers=x", "--cert-dir=" + dir}, says: "Warning: kube-apiserver: --etcd-servers=x has no effect: the API server keeps its own store", fails: "apiserver.crt"},
		"all versions":       {program: APIServer, args: []string{"--runtime-config=api/all=true", "--cert-dir=" + dir}, says: "--runtime-config=api/all=true: setpoint serves stable versions only", fails: "apiserver.crt"},
		"a beta version":     {program: APIServer, args: []string{"--runtime-config=apps/v1,policy/v1beta1/x=true", "--cert-dir=" + dir}, says: "--runtime-config=policy/v1beta1/x=true: setpoint serves stable", fails: "apiserver.crt"},
		"no stable version":  {program: APIServer, args: []string{"--runtime-config=api/beta=false,apps/v1=false"}, fails: "apps/v1=false: setpoint cannot turn off what it serves"},
		"no core":            {program: APIServer, args: []string{"--runtime-config=v1=false"}, fails: "v1=false: setpoint cannot"},
		"nothing stable":     {program: APIServer, args: []string{"--runtime-config=api/ga=false"}, fails: "api/ga=false: setpoint cannot"},
		"odd version":        {program: APIServer, args: []string{"--runtime-config=apps/v1=maybe"}, fails: "apps/v1=maybe is neither true nor false"},
		"privileged":         {program: APIServer, args: []string{"--allow-privileged=false"}, fails: "--allow-privileged=false: setpoint allows privileged pods"},
		"no such plugin":     {program: APIServer, args: []string{"--enable-admission-plugins=Nothing"}, fails: "--enable-admission-plugins: Nothing: there is no such plugin"},
		"features":           {program: APIServer, args: []string{"--feature-gates=WatchList=true,AllAlpha=true", "--cert-dir=" + dir}, says: "Warning: kube-apiserver: --feature-gates: AllAlpha=true: ", fails: "apiserver.crt"},
		"loops":              {program: APIServer, loops: "some", fails: `SETPOINT_ENVTEST_LOOPS must be "all", or not be set: it is "some"`},
		"client URL":         {program: Etcd, args: []string{"--listen-client-urls=x"}, fails: `--listen-client-urls: "x" is no URL`},
		"no port, no number": {program: APIServer, args: []string{"--secure-port=x"}, fails: "secure-port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(LoopsVariable, tc.loops)
			var said strings.Builder
			err := Run(t.Context(), tc.program, tc.args, &said, &said)
			if !strings.Contains(said.String(), tc.says) {
				t.Errorf("it said %q", said.String())
			}
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("it failed with %v", err)
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	for _, tc := range []struct {
		allLoops bool
		want     string
	}{{false, "ServiceAccount,Priority"}, {true, "Priority"}} {
		o := options{admission: choice.Flags{Disable: []string{"ServiceAccount", "Priority"}}, anyLoops: tc.allLoops}
		if got := strings.Join(o.leftOut(), ","); got != tc.want {
			t.Errorf("all loops %v: %s", tc.allLoops, got)
		}
	}
}

// TestTheFirstIssuerSigns: as upstream; without one it is the cluster's own.
func TestTheFirstIssuerSigns(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{{nil, ""}, {[]string{"--service-account-issuer=https://a.example/", "--service-account-issuer=https://b.example/"}, "https://a.example/"}} {
		var o options
		var said strings.Builder
		if _, err := parse(o.flags(), tc.args, &said, &said); err != nil || said.Len() > 0 {
			t.Errorf("%q: %v, and it said %q", tc.args, err, said.String())
		}
		if got := o.config().Authentication.OwnIssuer; got != tc.want {
			t.Errorf("%q: the issuer is %q, want %q", tc.args, got, tc.want)
		}
	}
}

func TestEtcdIsHealthyUntilTheEnd(t *testing.T) {
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Etcd, []string{"--listen-client-urls=http://" + address}, io.Discard, io.Discard)
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		response, err := http.Get("http://" + address + "/health")
		if err == nil {
			response.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLink: the links are made, and made again when the binary has moved.
func TestLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "assets")
	for _, executable := range []string{"/bin/a", "/bin/b", "/bin/b"} {
		if err := Link(dir, executable); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{Etcd, APIServer, Kubectl} {
			if to, err := os.Readlink(filepath.Join(dir, name)); err != nil || to != executable {
				t.Errorf("%s leads to %s, %v", name, to, err)
			}
		}
	}
}
