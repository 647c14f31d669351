package certificates

import "github.com/setpoint-io/setpoint/apiserver/resource"

// certificateBlock is the type of PEM blocks that hold a certificate.
const certificateBlock = "CERTIFICATE"

// Kinds returns the kinds in the order in which discovery lists them.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(signingRequests()),
		resource.Erase(trustBundles()),
		resource.Erase(podRequests()),
	}
}
