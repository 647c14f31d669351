package setpoint_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// ready waits for a cluster that has been started, stops it with the test, and returns a client.
func ready(t *testing.T, c *setpoint.Cluster, err error) kubernetes.Interface {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

func write(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, client kubernetes.Interface, name string, want bool) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) || (err == nil) != want {
		t.Errorf("%s: %v", name, err)
	}
}

// TestForkOfACluster: a fork has what its origin had, and each goes its own way; in a bubble all of it runs in fake
// time, so nothing of a cluster in memory waits for anything outside.
func TestForkOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, SimulatedNodes: 2})
		origin := ready(t, c, err)
		write(t, origin, "before")
		image, err := c.Image(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write(t, origin, "after")
		for range 2 {
			f, err := image.Start(t.Context())
			fork := ready(t, f, err)
			has(t, fork, "before", true)
			has(t, fork, "after", false)
			write(t, fork, "in-fork")
			has(t, origin, "in-fork", false)
		}
		time.Sleep(10 * time.Minute)
		nodes, err := origin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 2 {
			t.Errorf("%d nodes, %v", len(nodes.Items), err)
		}
	})
}

// TestChanges: a cluster tells who wrote what.
func TestChanges(t *testing.T) {
	c, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, APIOnly: true})
	client := ready(t, c, err)
	before := c.Revision()
	write(t, client, "a")
	changes, err := c.Changes(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		if change.Name == "a" {
			if change.Verb != "create" || change.Resource.Resource != "configmaps" || change.User != "admin" {
				t.Errorf("%+v", change)
			}
			return
		}
	}
	t.Errorf("nobody created it: %+v", changes)
}

// TestTokensBearTheIssuerAskedFor: their issuer and audience, which the API answers to.
func TestTokensBearTheIssuerAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := setpoint.Config{InMemory: true, APIOnly: true}
		config.Authentication.OwnIssuer = "https://127.0.0.1:6443/"
		c, err := setpoint.Start(t.Context(), config)
		client := ready(t, c, err)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "holder"}}
		if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		made, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "holder", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := base64.RawURLEncoding.DecodeString(strings.Split(made.Status.Token, ".")[1])
		if err != nil || !strings.Contains(string(claims), `"iss":"https://127.0.0.1:6443/"`) {
			t.Errorf("the claims are %s, %v", claims, err)
		}
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: made.Status.Token}}
		answer, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || !answer.Status.Authenticated || !slices.Equal(answer.Status.Audiences, []string{config.Authentication.OwnIssuer}) {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// TestAForkRotatesAlone: keys that a fork drops are still its origin's.
func TestAForkRotatesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, APIOnly: true})
		origin := ready(t, c, err)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "holder"}}
		if _, err := origin.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		made, err := origin.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "holder", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.Fork(t.Context())
		fork := ready(t, f, err)
		good := func(client kubernetes.Interface, want bool) {
			t.Helper()
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: made.Status.Token}}
			answer, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil || answer.Status.Authenticated != want {
				t.Errorf("authenticated %v, want %v (%v)", answer.Status.Authenticated, want, err)
			}
		}
		good(fork, true)
		config, err := f.RESTConfig()
		if err != nil {
			t.Fatal(err)
		}
		order := rotations.Order{Kind: rotation.AccountKey, Order: rotations.Begin, KeepOld: &metav1.Duration{}}
		if _, err := admin.OrderRotation(t.Context(), config, order); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		good(fork, false)
		good(origin, true)
	})
}
