package gateway

import (
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

// featuresOfClass are what is supported, in the words of the API (sigs.k8s.io/gateway-api/pkg/features), sorted as it demands.
var featuresOfClass = []v1.SupportedFeature{
	{Name: "BackendTLSPolicy"},
	{Name: "BackendTLSPolicySANValidation"},
	{Name: "GRPCRoute"},
	{Name: "GRPCRouteNamedRouteRule"},
	{Name: "Gateway"},
	{Name: "GatewayAddressEmpty"},
	{Name: "GatewayHTTPListenerIsolation"},
	{Name: "GatewayHTTPSListenerDetectMisdirectedRequests"},
	{Name: "GatewayPort8080"},
	{Name: "HTTPRoute"},
	{Name: "HTTPRoute303RedirectStatusCode"},
	{Name: "HTTPRoute307RedirectStatusCode"},
	{Name: "HTTPRoute308RedirectStatusCode"},
	{Name: "HTTPRouteBackendProtocolH2C"},
	{Name: "HTTPRouteBackendProtocolWebSocket"},
	{Name: "HTTPRouteBackendRequestHeaderModification"},
	{Name: "HTTPRouteBackendTimeout"},
	{Name: "HTTPRouteCORS"},
	{Name: "HTTPRouteDestinationPortMatching"},
	{Name: "HTTPRouteHostRewrite"},
	{Name: "HTTPRouteMethodMatching"},
	{Name: "HTTPRouteNamedRouteRule"},
	{Name: "HTTPRouteParentRefPort"},
	{Name: "HTTPRoutePathRedirect"},
	{Name: "HTTPRoutePathRewrite"},
	{Name: "HTTPRoutePortRedirect"},
	{Name: "HTTPRouteQueryParamMatching"},
	{Name: "HTTPRouteRequestMirror"},
	{Name: "HTTPRouteRequestMultipleMirrors"},
	{Name: "HTTPRouteRequestPercentageMirror"},
	{Name: "HTTPRouteRequestTimeout"},
	{Name: "HTTPRouteResponseHeaderModification"},
	{Name: "HTTPRouteSchemeRedirect"},
	{Name: "ListenerSet"},
	{Name: "ReferenceGrant"},
	{Name: "TLSRoute"},
	{Name: "TLSRouteModeMixed"},
	{Name: "TLSRouteModeTerminate"},
}
