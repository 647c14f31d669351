package expiry

import (
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func none() []trust.Expiry { return nil }

// TestBundles: the last certificate of a bundle counts, and of an object the bundle that ends first.
func TestBundles(t *testing.T) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	put := func(at int, o resource.Object) {
		t.Helper()
		_, err := store.Table(withBundles[at]).Write(t.Context(), "", o.GetName(), func(*storage.View) (*storage.Change, error) {
			return &storage.Change{Object: o}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	early, late := authority(t, time.Unix(1e9, 0)), authority(t, time.Unix(2e9, 0))
	end := func(bundle []byte) time.Time { return lastEnd(bundle) }
	put(0, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.x"}, Spec: apiregistrationv1.APIServiceSpec{CABundle: slices.Concat(late, early)},
	})
	put(0, &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.none"}})
	put(1, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "w"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: late}},
			{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: early}},
			{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("nonsense")}},
		},
	})
	known := Known{Own: none, Nodes: none, Storage: store}
	want := []trust.Expiry{
		{Kind: trust.KindBundle, Name: "validatingwebhookconfiguration/w", Expires: end(early)},
		{Kind: trust.KindBundle, Name: "apiservice/v1.x", Expires: end(late)},
	}
	if got := known.All(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	text := `# HELP setpoint_certificate_expiry_timestamp_seconds When a certificate ends, in seconds since 1970: its kind, and whose it is.
# TYPE setpoint_certificate_expiry_timestamp_seconds gauge
` + fmt.Sprintf("setpoint_certificate_expiry_timestamp_seconds{kind=%q,name=%q} %g\n", want[0].Kind, want[0].Name, float64(want[0].Expires.Unix())) +
		fmt.Sprintf("setpoint_certificate_expiry_timestamp_seconds{kind=%q,name=%q} %g\n", want[1].Kind, want[1].Name, float64(want[1].Expires.Unix()))
	if err := testutil.CollectAndCompare(known, strings.NewReader(text)); err != nil {
		t.Error(err)
	}
}

// TestThoseThatEndFirstAreTold, of too many; of nodes all: another server may know the former certificate of one that ends late here.
func TestThoseThatEndFirstAreTold(t *testing.T) {
	start := time.Unix(1e9, 0)
	own := []trust.Expiry{{Kind: trust.KindServer, Name: "a", Expires: start.Add(1500 * time.Hour)}, {Kind: trust.KindAuthority, Expires: start}}
	for n := range 2 * Max {
		own = append(own, trust.Expiry{Kind: trust.KindServer, Name: fmt.Sprint(n), Expires: start.Add(2000*time.Hour + time.Duration(n))})
	}
	nodes := func() (all []trust.Expiry) {
		for n := range 2000 {
			all = append(all, trust.Expiry{Kind: trust.KindNode, Name: fmt.Sprint(n), Expires: start.Add(time.Duration(n) * time.Hour)})
		}
		return all
	}
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	all := Known{Own: func() []trust.Expiry { return own }, Nodes: nodes, Storage: store}.All()
	if len(all) != Max+2000 || all[0] != own[1] || all[len(all)-1].Name != fmt.Sprint(Max-3) || all[1].Kind != trust.KindNode {
		t.Errorf("%d, from %v to %v", len(all), all[0], all[len(all)-1])
	}
}

// authority is one that was made then, in PEM.
func authority(t *testing.T, made time.Time) []byte {
	t.Helper()
	ca, err := trust.NewCA(made)
	if err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(ca.CertPEM()); block == nil {
		t.Fatal("no PEM")
	}
	return ca.CertPEM()
}
