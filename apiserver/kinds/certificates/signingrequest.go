package certificates

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type signingRequest = certificatesv1.CertificateSigningRequest

func signingRequests() resource.Kind[*signingRequest] {
	return resource.Kind[*signingRequest]{
		GroupVersionKind: certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"),
		Plural:           "certificatesigningrequests",
		ShortNames:       []string{"csr"},
		ClusterScoped:    true,
		New:              func() *signingRequest { return &signingRequest{} },
		NewList:          func() runtime.Object { return &certificatesv1.CertificateSigningRequestList{} },
		ValidateName:     func(string, bool) []string { return nil },
		Requested:        recordRequester,
		PrepareUpdate:    func(request, old *signingRequest) { request.Spec = old.Spec },
		Validate:         validateNewRequest,
		ValidateUpdate: func(request, old *signingRequest) field.ErrorList {
			return validateRequestUpdate(request, old, powers{})
		},
		Resets: []string{"spec", "status"},
		Spec:   func(request *signingRequest) any { return &request.Spec },
		Status: func(request *signingRequest) any { return &request.Status },
		Fields: func(request *signingRequest) fields.Set {
			return fields.Set{"spec.signerName": request.Spec.SignerName}
		},
		Parts: []resource.Part[*signingRequest]{
			{
				Name: "approval", Resets: []string{"spec", "status.certificate"}, Prepare: prepareApproval,
				Validate: func(request, old *signingRequest, _ time.Time) field.ErrorList {
					return validateRequestUpdate(request, old, powers{approve: true})
				},
			},
			{
				Name: "status", Resets: []string{"spec", "status.conditions"}, Prepare: prepareRequestStatus,
				Validate: func(request, old *signingRequest, _ time.Time) field.ErrorList {
					return validateRequestUpdate(request, old, powers{sign: true})
				},
			},
		},
		Columns: signingRequestColumns(),
	}
}

// recordRequester: the signer relies on who asked, so nobody writes it himself.
func recordRequester(request *signingRequest, by user.Info) {
	spec := &request.Spec
	spec.Username, spec.UID, spec.Groups, spec.Extra = by.GetName(), by.GetUID(), by.GetGroups(), nil
	for key, values := range by.GetExtra() {
		if spec.Extra == nil {
			spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
}

// prepareRequestStatus: the signer sets the certificate and says what failed, and
// leaves alone who approved.
func prepareRequestStatus(request, old *signingRequest, now time.Time) {
	request.Spec = old.Spec
	keepConditions(request, old, certificatesv1.CertificateApproved)
	keepConditions(request, old, certificatesv1.CertificateDenied)
	stampConditions(request, old, now)
}

// prepareApproval: the approver sets conditions only.
func prepareApproval(request, old *signingRequest, now time.Time) {
	stampConditions(request, old, now)
	conditions := request.Status.Conditions
	request.Spec, request.Status = old.Spec, old.Status
	request.Status.Conditions = conditions
}

// keepConditions takes the stored conditions of a type, unless there are fewer or more.
func keepConditions(request, old *signingRequest, kind certificatesv1.RequestConditionType) {
	stored, at := conditionsOf(old, kind), []int{}
	for i := range request.Status.Conditions {
		if request.Status.Conditions[i].Type == kind {
			at = append(at, i)
		}
	}
	if len(at) != len(stored) {
		return
	}
	for i, index := range at {
		request.Status.Conditions[index] = stored[i]
	}
}

func conditionsOf(request *signingRequest, kind certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
	var found []certificatesv1.CertificateSigningRequestCondition
	for _, condition := range request.Status.Conditions {
		if condition.Type == kind {
			found = append(found, condition)
		}
	}
	return found
}

// stampConditions sets the times that the client left out.
func stampConditions(request, old *signingRequest, at time.Time) {
	now := metav1.NewTime(at)
	for i := range request.Status.Conditions {
		condition := &request.Status.Conditions[i]
		if condition.LastUpdateTime.IsZero() {
			condition.LastUpdateTime = now
		}
		if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = sinceWhen(old, condition, now)
		}
	}
}

// sinceWhen is since when the condition has been so.
func sinceWhen(old *signingRequest, condition *certificatesv1.CertificateSigningRequestCondition, now metav1.Time) metav1.Time {
	for _, was := range old.Status.Conditions {
		if was.Type == condition.Type && was.Status == condition.Status && !was.LastTransitionTime.IsZero() {
			return was.LastTransitionTime
		}
	}
	return now
}

func signingRequestColumns() []resource.Column[*signingRequest] {
	spec := certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()
	return []resource.Column[*signingRequest]{
		column.Name[*signingRequest](),
		column.Age[*signingRequest](),
		column.Text(
			"SignerName",
			spec["signerName"],
			0,
			func(request *signingRequest) string { return column.OrNone(request.Spec.SignerName) },
		),
		column.Text("Requestor", spec["request"], 0, func(request *signingRequest) string { return request.Spec.Username }),
		column.Text("RequestedDuration", spec["expirationSeconds"], 0, func(request *signingRequest) string {
			if seconds := request.Spec.ExpirationSeconds; seconds != nil {
				return duration.HumanDuration(time.Duration(*seconds) * time.Second)
			}
			return column.None
		}),
		column.Text("Condition", certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"], 0, conditionCell),
	}
}

func conditionCell(request *signingRequest) string {
	has := func(kind certificatesv1.RequestConditionType) bool { return len(conditionsOf(request, kind)) > 0 }
	state := "Pending"
	switch {
	case has(certificatesv1.CertificateDenied):
		state = "Denied"
	case has(certificatesv1.CertificateApproved):
		state = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		state += ",Failed"
	}
	if len(request.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return state
}
