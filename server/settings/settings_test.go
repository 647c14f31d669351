package settings

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/controllers/dnsservice"
	"github.com/setpoint-io/setpoint/controllers/loadbalancer"
)

// written is one value of each field that means something else than its zero value. A new field needs a line.
var written = map[string]func(t *testing.T) any{
	"PodCIDR":               func(*testing.T) any { return "10.43.0.0/16" },
	"NodeMaskSize":          func(*testing.T) any { return 25 },
	"NodeMaskSize6":         func(*testing.T) any { return 72 },
	"ServiceCIDR":           func(*testing.T) any { return "10.97.0.0/16" },
	"LoadBalancerAddresses": func(*testing.T) any { return "none" },
	"ServiceExternalIPs":    func(*testing.T) any { return []string{"all"} },
	"SchedulerConfig":       func(t *testing.T) any { return schedulerFile(t) },
	"DNS":                   func(*testing.T) any { return "none" },
	"GatewayAPI":            func(*testing.T) any { return true },
	"LocalVolumes":          func(*testing.T) any { return true },
	"SigningDuration":       func(*testing.T) any { return time.Hour },
}

func schedulerFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: mine\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// beside are other settings without which one may not be written.
var beside = map[string]Options{
	"NodeMaskSize6": {PodCIDR: "10.42.0.0/16,fd42::/56", ServiceCIDR: "10.96.0.0/16,fd96::/112"},
}

// TestEverySettingIsParsed: what is written into a field is meant by the Cluster.
func TestEverySettingIsParsed(t *testing.T) {
	fields := reflect.TypeFor[Options]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if written[name] == nil {
			t.Errorf("%s: give a value that means something else than its zero value in written", name)
			continue
		}
		o := beside[name]
		unset, unsetErr := o.Parse()
		reflect.ValueOf(&o).Elem().Field(i).Set(reflect.ValueOf(written[name](t)))
		if got, err := o.Parse(); err != nil || unsetErr != nil || reflect.DeepEqual(got, unset) {
			t.Errorf("%s means nothing: Parse forgets it (%v, %v)", name, err, unsetErr)
		}
	}
}

// TestAllThatIsWrongIsSaid at once.
func TestAllThatIsWrongIsSaid(t *testing.T) {
	_, err := Options{PodCIDR: "nowhere", LoadBalancerAddresses: "10.0.0.1", DNS: "other", ServiceExternalIPs: []string{"all", "none"}}.Parse()
	if !errors.Is(err, loadbalancer.ErrSource) || !errors.Is(err, dnsservice.ErrFlag) || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("%v", err)
	}
}

func TestParse(t *testing.T) {
	got, err := Options{LoadBalancerAddresses: "192.0.2.0/28", ServiceExternalIPs: []string{"edge"}, SigningDuration: time.Hour}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")}; !slices.Equal(got.LoadBalancers.Pool, want) {
		t.Errorf("addresses are %v", got.LoadBalancers)
	}
	if got.WithoutDNS || got.GatewayAPI || got.LocalVolumes || got.SigningDuration != time.Hour || !slices.Equal(got.ServiceExternalIPs, []string{"edge"}) {
		t.Errorf("%+v", got)
	}
}
