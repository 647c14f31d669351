package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFilesOfFlags: a mistake in a file is said before anything is opened, by whoever reads it.
func TestFilesOfFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const group = "apiVersion: apiserver.config.k8s.io/v1\nkind: "
	plugin := func(name, text string) string {
		file(name+".part", text)
		return file(name, group+"AdmissionConfiguration\nplugins: [{name: "+name+", path: "+name+".part}]\n")
	}
	for name, c := range map[string]struct {
		set  func(o *Options)
		want string // "": it is right
	}{
		"no files": {func(*Options) {}, ""},
		"authentication": {func(o *Options) {
			o.Authentication.File = file("authentication", group+"AuthenticationConfiguration\njwt: [{issuer: {}}]\n")
		}, "authentication: " + dir + "/authentication: [jwt[0].issuer.url"},
		"the cluster's own issuer": {func(o *Options) {
			o.Authentication.File = file("own", group+"AuthenticationConfiguration\njwt: [{issuer: {url: 'https://kubernetes.default.svc.cluster.local', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n")
		}, "jwt[0].issuer.url"},
		"authorization": {func(o *Options) {
			o.AuthorizationFile = file("authorization", group+"AuthorizationConfiguration\nauthorizers: [{type: ABAC, name: abac}]\n")
		}, "authorization: " + dir + "/authorization: authorizers[0]: type ABAC is refused"},
		"encryption": {func(o *Options) {
			o.Encryption.File = file("encryption", group+"EncryptionConfiguration\nresources: [{resources: [secrets], providers: []}]\n")
		}, "--encryption-provider-config: "},
		"a KMS plugin that is not there": {func(o *Options) {
			o.Encryption.File = file("kms", group+"EncryptionConfiguration\nresources: [{resources: [secrets], providers: [{kms: {apiVersion: v2, name: k, endpoint: 'unix:///nowhere/s'}}]}]\n")
		}, ""},
		"audit policy": {func(o *Options) {
			o.Audit.Path, o.Audit.MaxSizeMiB, o.Audit.PolicyFile = "-", 1, file("policy", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Everything}]\n")
		}, "audit policy: " + dir + "/policy: "},
		"PodSecurity":   {func(o *Options) { o.AdmissionConfigFile = plugin("PodSecurity", "kind: Other\n") }, "admission plugin PodSecurity: "},
		"ResourceQuota": {func(o *Options) { o.AdmissionConfigFile = plugin("ResourceQuota", "kind: Other\n") }, "Other"},
		"a webhook's key": {func(o *Options) {
			o.AdmissionConfigFile = plugin("MutatingAdmissionWebhook", group+"WebhookAdmissionConfiguration\nkubeConfigFile: /nowhere\n")
		}, "admission plugin MutatingAdmissionWebhook: kubeConfigFile: "},
		"no policies": {func(o *Options) {
			o.AdmissionConfigFile = plugin("ValidatingAdmissionPolicy", group+"ValidatingAdmissionPolicyConfiguration\nstaticManifestsDir: /nowhere\n")
		}, "admission plugin ValidatingAdmissionPolicy: "},
		"nothing told": {func(o *Options) { o.Admission.Enable = []string{"ImagePolicyWebhook"} }, "admission plugin ImagePolicyWebhook: --admission-control-config-file must have its configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: "s", DataDir: filepath.Join(dir, "data")}
			o.SigningDuration, o.DNS, o.LoadBalancerAddresses = time.Hour, "builtin", "nodes"
			c.set(&o)
			_, err := o.Parse()
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v", err)
			}
			if _, err := os.Stat(o.DataDir); err == nil {
				t.Error("the data directory was made")
			}
		})
	}
}
