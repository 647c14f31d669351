package certificates

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type podRequest = certificatesv1.PodCertificateRequest

func podRequests() resource.Kind[*podRequest] {
	return resource.Kind[*podRequest]{
		GroupVersionKind: certificatesv1.SchemeGroupVersion.WithKind("PodCertificateRequest"),
		Plural:           "podcertificaterequests",
		New:              func() *podRequest { return &podRequest{} },
		NewList:          func() runtime.Object { return &certificatesv1.PodCertificateRequestList{} },
		Default:          defaultPodRequest,
		Validate:         validatePodRequest,
		ValidateUpdate:   validatePodRequestUpdate,
		Spec:             func(request *podRequest) any { return &request.Spec },
		Status:           func(request *podRequest) any { return &request.Status },
		Fields: func(request *podRequest) fields.Set {
			return fields.Set{
				"spec.signerName": request.Spec.SignerName, "spec.podName": request.Spec.PodName, "spec.nodeName": string(request.Spec.NodeName),
			}
		},
		Parts: []resource.Part[*podRequest]{{
			Name: "status", Resets: []string{"metadata", "spec"},
			Prepare: func(request, old *podRequest, _ time.Time) {
				request.Spec = old.Spec
				metav1.ResetObjectMetaForStatus(request, old)
			},
			Validate: validatePodRequestStatus,
		}},
		RequireResourceVersion: true,
		Columns:                podRequestColumns(),
	}
}

// podRequestLife is how long a certificate lasts at most unless the request says so, in seconds.
const podRequestLife = 24 * 60 * 60

func defaultPodRequest(request *podRequest) {
	if request.Spec.MaxExpirationSeconds == nil {
		request.Spec.MaxExpirationSeconds = new(int32(podRequestLife))
	}
}

func podRequestColumns() []resource.Column[*podRequest] {
	doc := certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()
	return []resource.Column[*podRequest]{
		column.Name[*podRequest](),
		column.Text("PodName", doc["podName"], 0, func(request *podRequest) string { return request.Spec.PodName }),
		column.Text(
			"ServiceAccountName",
			doc["serviceAccountName"],
			0,
			func(request *podRequest) string { return request.Spec.ServiceAccountName },
		),
		column.Text("NodeName", doc["nodeName"], 0, func(request *podRequest) string { return string(request.Spec.NodeName) }),
		column.Text("SignerName", doc["signerName"], 0, func(request *podRequest) string { return request.Spec.SignerName }),
		column.Text("State", "Is the request Pending, Issued, Denied, or Failed?", 0, podRequestState),
		column.Text("UnverifiedUserAnnotations", doc["unverifiedUserAnnotations"], 0, func(request *podRequest) string {
			return labels.FormatLabels(request.Spec.UnverifiedUserAnnotations)
		}),
	}
}

// podRequestState: the last of the conditions decides; there is one at most.
func podRequestState(request *podRequest) string {
	state := "Pending"
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case certificatesv1.PodCertificateRequestConditionTypeIssued, certificatesv1.PodCertificateRequestConditionTypeDenied,
			certificatesv1.PodCertificateRequestConditionTypeFailed:
			state = condition.Type
		}
	}
	return state
}
