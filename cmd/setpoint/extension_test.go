package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vishvananda/netlink"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// extensionVariable makes the test's binary an aggregated API server, whose kubeconfig it names.
const extensionVariable = "SETPOINT_TEST_EXTENSION"

const (
	// extensionAddress is one that is no loopback address, since an EndpointSlice may have none of these.
	extensionAddress = "192.0.2.10"
	extensionPort    = "8443"
	extensionName    = "extension.default.svc"
	// toldIn is the ConfigMap in kube-system that tells aggregated servers whom to believe.
	toldIn = "extension-apiserver-authentication"
)

// startExtension starts, in the script's own network, the process that serveExtension is, and waits until it has written its certificate
// to extension.crt. It believes whom the cluster of $KUBECONFIG tells it to believe.
func startExtension(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: start-extension")
	}
	loopback, err := netlink.LinkByName("lo")
	ts.Check(err)
	ts.Check(netlink.AddrAdd(loopback, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(extensionAddress), Mask: net.CIDRMask(32, 32)}}))
	output := &lockedBuffer{}
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.Getenv("WORK"), output, output
	cmd.Env = append(os.Environ(), extensionVariable+"="+ts.Getenv("KUBECONFIG"))
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		<-ended
		ts.Logf("the extension said:\n%s", output.String())
	})
	deadline, tick := time.After(readyTimeout), time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if _, err := os.Stat(ts.MkAbs("extension.crt")); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("start-extension: not ready:\n%s", output.String())
		}
	}
}

// serveExtension serves words.example.com/v1 at extensionAddress. Whom it believes is the affair of upstream's library for aggregated
// servers, which reads extension-apiserver-authentication, and nothing else, and follows it. Each answer is the name of who asks.
func serveExtension(kubeconfig string) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey(extensionName, nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	who, err := believed(context.Background(), kubeconfig)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(extensionAddress, extensionPort), &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, // each request is judged
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile("extension.crt", certificate, 0o600); err != nil {
		return err
	}
	return (&http.Server{Handler: extension(who), ReadHeaderTimeout: time.Minute}).Serve(listener)
}

// believed judges requests by what the cluster says, until ctx ends.
func believed(ctx context.Context, kubeconfig string) (authenticator.Request, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authorities, err := dynamiccertificates.NewDynamicCAFromConfigMapController("request-header", metav1.NamespaceSystem, toldIn,
		"requestheader-client-ca-file", client)
	if err != nil {
		return nil, err
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(toldIn, metav1.NamespaceSystem, client, "requestheader-username-headers",
		"requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names")
	if err := errors.Join(authorities.RunOnce(ctx), headers.RunOnce(ctx)); err != nil {
		return nil, err
	}
	go authorities.Run(ctx, 1)
	go headers.Run(ctx, 1)
	list := func(f func() []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(f)
	}
	return headerrequest.NewDynamicVerifyOptionsSecure(authorities.VerifyOptions, list(headers.AllowedClientNames), list(headers.UsernameHeaders),
		list(headers.UIDHeaders), list(headers.GroupHeaders), list(headers.ExtraHeaderPrefixes)), nil
}

// extension answers whom it believes: what it has, or who asks.
func extension(who authenticator.Request) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok, err := who.AuthenticateRequest(r)
		if err != nil || !ok {
			http.Error(w, fmt.Sprintf("it believes nobody: %v", err), http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/apis/words.example.com/v1" {
			_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "words.example.com/v1",
			})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"asks": answer.User.GetName()})
	})
}
