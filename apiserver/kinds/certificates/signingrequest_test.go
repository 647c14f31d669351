package certificates

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func verdict(kind certificatesv1.RequestConditionType, reason string) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason}
}

func requestWith(conditions ...certificatesv1.CertificateSigningRequestCondition) *signingRequest {
	return &signingRequest{Status: certificatesv1.CertificateSigningRequestStatus{Conditions: conditions}}
}

func TestRequesterIsRecorded(t *testing.T) {
	request := &signingRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Username: "root", Extra: map[string]certificatesv1.ExtraValue{"a": {"b"}}}}
	recordRequester(request, &user.DefaultInfo{Name: "ada", UID: "7", Groups: []string{"ops"}, Extra: map[string][]string{"x": {"y"}}})
	want := certificatesv1.CertificateSigningRequestSpec{Username: "ada", UID: "7", Groups: []string{"ops"}, Extra: map[string]certificatesv1.ExtraValue{"x": {"y"}}}
	if diff := cmp.Diff(want, request.Spec); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
	recordRequester(request, &user.DefaultInfo{})
	if diff := cmp.Diff(certificatesv1.CertificateSigningRequestSpec{}, request.Spec); diff != "" {
		t.Error("nobody (-want +got):\n", diff)
	}
}

func TestApprovalChangesConditionsOnly(t *testing.T) {
	old := requestWith()
	old.Status.Certificate = []byte("old")
	request := requestWith(verdict(certificatesv1.CertificateApproved, "Me"))
	request.Spec.Username, request.Status.Certificate = "root", []byte("new")
	prepareApproval(request, old, kindstest.Now)
	now := metav1.NewTime(kindstest.Now)
	want := verdict(certificatesv1.CertificateApproved, "Me")
	want.LastUpdateTime, want.LastTransitionTime = now, now
	if diff := cmp.Diff(requestWith(want).Status.Conditions, request.Status.Conditions); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
	if request.Spec.Username != "" || string(request.Status.Certificate) != "old" {
		t.Errorf("spec or certificate changed: %+v", request)
	}
}

func TestSignerLeavesTheApprovalAlone(t *testing.T) {
	approved := verdict(certificatesv1.CertificateApproved, "Me")
	approved.LastUpdateTime, approved.LastTransitionTime = metav1.NewTime(kindstest.Now), metav1.NewTime(kindstest.Now)
	failed := verdict(certificatesv1.CertificateFailed, "NoKey")
	failed.LastTransitionTime = metav1.NewTime(kindstest.Now)
	request := requestWith(verdict(certificatesv1.CertificateApproved, "Other"), verdict(certificatesv1.CertificateFailed, "NoKey"))
	later := kindstest.Now.Add(time.Hour)
	prepareRequestStatus(request, requestWith(approved, failed), later)
	failed.LastUpdateTime = metav1.NewTime(later)
	if diff := cmp.Diff(requestWith(approved, failed).Status.Conditions, request.Status.Conditions); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

func TestWhoMayChangeWhat(t *testing.T) {
	approved, denied := verdict(certificatesv1.CertificateApproved, "Me"), verdict(certificatesv1.CertificateDenied, "Me")
	signed := func(request *signingRequest, text string) *signingRequest {
		request.Status.Certificate = []byte(text)
		return request
	}
	const remove, add, set, reset = `status.conditions: Forbidden: updates may not remove a condition of type "Approved"`,
		`status.conditions: Forbidden: updates may not add a condition of type "Denied"`,
		"status.certificate: Forbidden: updates may not set certificate content",
		"status.certificate: Forbidden: updates may not modify existing certificate content"
	for name, test := range map[string]struct {
		request, old *signingRequest
		has          powers
		want         string
	}{
		"approver denies":    {requestWith(denied), requestWith(), powers{approve: true}, ""},
		"signer denies":      {requestWith(denied), requestWith(), powers{sign: true}, add},
		"approver retracts":  {requestWith(), requestWith(approved), powers{approve: true}, remove},
		"signer modifies":    {requestWith(verdict("Approved", "Other")), requestWith(approved), powers{sign: true}, `status.conditions: Forbidden: updates may not modify a condition of type "Approved"`},
		"approver signs":     {signed(requestWith(), "x"), requestWith(), powers{approve: true}, set},
		"signer signs again": {signed(requestWith(), "x"), signed(requestWith(), "y"), powers{sign: true}, reset},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, err := range validateRequestUpdate(test.request, test.old, test.has) {
				if err.Type == field.ErrorTypeForbidden {
					got, _, _ = strings.Cut(err.Error(), "\n")
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
