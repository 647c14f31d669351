package standin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
	"github.com/setpoint-io/setpoint/apiserver/runtimeconfig"
	"github.com/setpoint-io/setpoint/internal/gates"
)

// LoopsVariable says which control loops run: "all", or those of upstream's API server alone.
const LoopsVariable = "SETPOINT_ENVTEST_LOOPS"

var (
	errLoops      = errors.New(LoopsVariable + ` must be "all", or not be set`)
	errPrivileged = errors.New("--allow-privileged=false: setpoint allows privileged pods; a PodSecurity label forbids them in a namespace")
)

// options are the flags of kube-apiserver that are honoured.
type options struct {
	bindAddress           string
	securePort            int
	certDir, certFile     string
	keyFile, clientCAFile string
	issuers               []string
	admission             choice.Flags
	authorization         []string
	runtimeConfig         cliflag.ConfigurationMap
	featureGates          map[string]string
	privileged            bool
	anyLoops              bool
}

// idle are flags of envtest that nothing comes of here: each is named, with the reason, on standard error.
var idle = map[string]string{
	"etcd-servers":                     "the API server keeps its own store, in memory",
	"service-cluster-ip-range":         "Services have addresses of 10.96.0.0/16",
	"advertise-address":                "nobody is told of it",
	"service-account-key-file":         "the cluster's own key verifies tokens",
	"service-account-signing-key-file": "the cluster's own key signs tokens",
}

func (o *options) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet(APIServer, pflag.ContinueOnError)
	flags.StringVar(&o.bindAddress, "bind-address", "127.0.0.1", "address to listen at")
	flags.IntVar(&o.securePort, "secure-port", 6443, "port to listen at")
	flags.StringVar(&o.certDir, "cert-dir", "", "folder with apiserver.crt and apiserver.key")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "certificate to serve with")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "its key")
	flags.StringVar(&o.clientCAFile, "client-ca-file", "", "authority of client certificates")
	flags.StringArrayVar(&o.issuers, "service-account-issuer", nil, "issuer of the tokens of service accounts; of several, the first")
	flags.StringSliceVar(&o.admission.Disable, "disable-admission-plugins", nil, "admission plugins that are left out")
	flags.StringSliceVar(&o.admission.Enable, "enable-admission-plugins", nil, "admission plugins that run beside the default ones")
	flags.StringSliceVar(&o.authorization, "authorization-mode", []string{"RBAC"}, "RBAC and Node, which are always on")
	o.runtimeConfig = cliflag.ConfigurationMap{}
	flags.Var(&o.runtimeConfig, "runtime-config", "versions of APIs to turn on; stable ones are always on, and there are no others")
	flags.StringToStringVar(&o.featureGates, "feature-gates", nil, "features of upstream; what setpoint does otherwise has no effect")
	flags.BoolVar(&o.privileged, "allow-privileged", true, "true: privileged pods are allowed")
	for name, why := range idle {
		flags.String(name, "", noEffect+why)
	}
	return flags
}

// complete says what is wrong, and fills in what follows from other flags and the environment.
func (o *options) complete(loops string) error {
	if o.certFile == "" {
		o.certFile, o.keyFile = filepath.Join(o.certDir, "apiserver.crt"), filepath.Join(o.certDir, "apiserver.key")
	}
	for _, mode := range o.authorization {
		if mode != "RBAC" && mode != "Node" {
			return fmt.Errorf("--authorization-mode: setpoint has RBAC and Node, not %q", mode)
		}
	}
	if !o.privileged {
		return errPrivileged
	}
	if err := (choice.Flags{Enable: o.admission.Enable}).Validate(); err != nil { // of others the cluster says so
		return err
	}
	switch loops {
	case "all":
		o.anyLoops = true
	case "":
	default:
		return fmt.Errorf("%w: it is %q", errLoops, loops)
	}
	return nil
}

func (o *options) tls() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--cert-dir, --tls-cert-file: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: x509.NewCertPool()}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	if o.clientCAFile == "" {
		return config, nil
	}
	authority, err := os.ReadFile(o.clientCAFile)
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	if !config.ClientCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("--client-ca-file: %s holds no certificate", o.clientCAFile)
	}
	return config, nil
}

// runAPIServer serves until ctx ends.
func runAPIServer(ctx context.Context, args []string, out, errOut io.Writer) (err error) {
	cluster, err := StartAPIServer(ctx, args, out, errOut)
	if err != nil || cluster == nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	return cluster.Wait(ctx)
}

// StartAPIServer starts what flags of kube-apiserver ask for, and returns when it serves. It runs until ctx ends or the
// caller stops it. It is nil if the flags ask for help, or ctx has ended before. It listens when the API answers, so that
// whoever is answered need not wait.
func StartAPIServer(ctx context.Context, args []string, out, errOut io.Writer) (*setpoint.Cluster, error) {
	var o options
	if help, err := parse(o.flags(), args, out, errOut); help || err != nil {
		return nil, err
	}
	absent, err := runtimeconfig.Judge(o.runtimeConfig)
	if err := errors.Join(o.complete(os.Getenv(LoopsVariable)), err); err != nil {
		return nil, err
	}
	for _, name := range absent {
		fmt.Fprintf(errOut, "Warning: %s: --runtime-config=%s=true: setpoint serves stable versions only, "+
			"so versions such as v1beta1 and v1alpha1 are not there\n", APIServer, name)
	}
	o.warnOfFeatures(errOut)
	config, err := o.tls()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.bindAddress, strconv.Itoa(o.securePort)))
	if err != nil {
		return nil, err
	}
	cluster, err := setpoint.Start(ctx, o.config())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := cluster.Ready(ctx); err != nil {
		return nil, errors.Join(ignoreEnd(ctx, err), listener.Close(), cluster.Stop())
	}
	cluster.ListenTLS(listener, config)
	return cluster, nil
}

// config is the cluster that the flags ask for.
func (o *options) config() setpoint.Config {
	config := setpoint.Config{
		InMemory: true, APIOnly: !o.anyLoops, DisabledAdmission: o.leftOut(),
		EnabledAdmission: o.admission.Added(), ServiceExternalIPs: []string{"all"}, // as upstream by default
	}
	if len(o.issuers) > 0 {
		config.Authentication.OwnIssuer = o.issuers[0]
	}
	return config
}

// warnOfFeatures names the feature gates that have no effect.
func (o *options) warnOfFeatures(errOut io.Writer) {
	if err := gates.Validate(o.featureGates); err != nil {
		for line := range strings.Lines(err.Error() + "\n") {
			fmt.Fprintf(errOut, "Warning: %s: %s", APIServer, line)
		}
	}
}

// leftOut are the plugins that are left out. envtest leaves ServiceAccount out because nothing makes accounts; all
// loops do.
func (o *options) leftOut() (disabled []string) {
	for _, name := range o.admission.Disable {
		if name != "ServiceAccount" || !o.anyLoops {
			disabled = append(disabled, name)
		}
	}
	return disabled
}

// ignoreEnd is no error if the process was asked to end.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
