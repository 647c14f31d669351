package kubeletconfig

import (
	"errors"
	"fmt"
	"os"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// fileSizeMax bounds a configuration file, in bytes.
const fileSizeMax = 1 << 20

var (
	errSize = errors.New("longer than a configuration can be")
	errKind = errors.New("want apiVersion kubelet.config.k8s.io/v1beta1 and kind KubeletConfiguration")
)

// Read reads the file of --kubelet-config; an empty path is Default.
func Read(path string) (Settings, error) {
	if path == "" {
		return Default(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, fmt.Errorf("--kubelet-config: %w", err)
	}
	s, err := Parse(text)
	if err != nil {
		return Settings{}, fmt.Errorf("--kubelet-config %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a KubeletConfiguration in YAML or JSON.
func Parse(text []byte) (Settings, error) {
	if len(text) > fileSizeMax {
		return Settings{}, fmt.Errorf("%w: %d bytes", errSize, len(text))
	}
	var c kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Settings{}, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	if c.APIVersion != kubeletv1beta1.SchemeGroupVersion.String() || c.Kind != "KubeletConfiguration" {
		return Settings{}, fmt.Errorf("%w, not %q and %q", errKind, c.APIVersion, c.Kind)
	}
	if err := refuse(&c); err != nil {
		return Settings{}, err
	}
	return settings(&c)
}
