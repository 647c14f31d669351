package main

import (
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/internal/zpages"
)

// nodeFlags are those for which a KubeletConfiguration has fields too: a flag wins over the file.
type nodeFlags struct {
	file    string
	walls   wallFlags
	plugins struct{ config, dir string }
	flagged host.Settings
}

// wallFlags are those about what keeps pods from their node for which a KubeletConfiguration has no fields.
type wallFlags struct {
	users        string
	hostFirewall bool
}

func (w *wallFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&w.users, "user-namespaces", string(host.UserNamespacesDefault),
		"which pods get a user namespace: asked (those with hostUsers: false), auto (also those in which nothing could need the host's users) or all (that can)")
	flags.BoolVar(&w.hostFirewall, "host-firewall", true,
		"keep pods from the ports of nodes that are no endpoint of a Service, no port of a pod with hostNetwork, and none of this program's that are for pods")
}

// set puts what the flags say into the settings.
func (w *wallFlags) set(s *host.Settings) (err error) {
	s.OpenHost = !w.hostFirewall
	s.UserNamespaces, err = host.ParseUserNamespaces(w.users)
	return err
}

// kubeletName is how upstream calls a node's agent.
const kubeletName = "kubelet"

const registriesFlagName = "registries"

// registriesFlag says from where images are fetched; a KubeletConfiguration has no field for it.
func registriesFlag(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, registriesFlagName, "",
		"from where images are fetched: a file like k3s's registries.yaml, or a folder like containerd's certs.d; empty: from the registries that they name")
}

// kubeletConfigFlag adds only the file.
func kubeletConfigFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "kubelet-config", "", "file with a KubeletConfiguration for this node")
}

// add gives flags the kubelet's names.
func (n *nodeFlags) add(flags *pflag.FlagSet) {
	kubeletConfigFlag(flags, &n.file)
	n.walls.add(flags)
	registriesFlag(flags, &n.flagged.Registries)
	flags.StringVar(&n.plugins.config, host.CredentialConfigFlag, "", "file or folder with a CredentialProviderConfig: plugins that have credentials of image registries")
	flags.StringVar(&n.plugins.dir, host.CredentialDirFlag, "", "folder with the programs of those plugins")
	flags.Int64Var(&n.flagged.MaxPods, "max-pods", host.DefaultMaxPods, "how many pods this node takes")
	d, p := host.DefaultImages, &n.flagged.Images
	flags.IntVar(&p.HighPercent, "image-gc-high-threshold", d.HighPercent,
		"percent of the disk in use from which images that nobody uses are removed; 100: never")
	flags.IntVar(&p.LowPercent, "image-gc-low-threshold", d.LowPercent, "percent of the disk in use at which that ends")
	flags.DurationVar(&p.MinAge, "minimum-image-ttl-duration", d.MinAge, "how long an image stays at least")
	flags.DurationVar(&p.MaxAge, "image-maximum-gc-age", d.MaxAge, "how long an image may be unused, whatever the disk says; 0: for ever")
}

// read reads the file and puts over it the flags that were given.
func (n *nodeFlags) read(flags *pflag.FlagSet) (host.Settings, error) {
	s, err := host.ReadSettings(n.file)
	if err != nil {
		return s, err
	}
	if err := n.walls.set(&s); err != nil {
		return s, err
	}
	s.Registries, s.Pages = n.flagged.Registries, zpages.Of(kubeletName, flags)
	if s.Credentials, err = host.ReadCredentials(n.plugins.config, n.plugins.dir); err != nil {
		return s, err
	}
	for name, set := range map[string]func(){
		"max-pods":                   func() { s.MaxPods = n.flagged.MaxPods },
		"image-gc-high-threshold":    func() { s.Images.HighPercent = n.flagged.Images.HighPercent },
		"image-gc-low-threshold":     func() { s.Images.LowPercent = n.flagged.Images.LowPercent },
		"minimum-image-ttl-duration": func() { s.Images.MinAge = n.flagged.Images.MinAge },
		"image-maximum-gc-age":       func() { s.Images.MaxAge = n.flagged.Images.MaxAge },
	} {
		if flags.Changed(name) {
			set()
		}
	}
	return s, nil
}
