/* The text contains no words of the server. */
#include "redis/net/tls_error.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

/* Explains the fault of the server's certificate. */
static void explain_certificate(long result, const char *name, char *out, size_t size) {
  switch (result) {
  case X509_V_ERR_HOSTNAME_MISMATCH:
    snprintf(out, size, "the server's certificate is for another name than %s", name);
    break;
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    snprintf(out, size, "the server's certificate is not for the address %s", name);
    break;
  case X509_V_ERR_CERT_HAS_EXPIRED:
    snprintf(out, size, "the server's certificate has expired");
    break;
  case X509_V_ERR_CERT_NOT_YET_VALID:
    snprintf(out, size, "the server's certificate is not valid yet");
    break;
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    snprintf(out, size, "the server's certificate is self-signed");
    break;
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    snprintf(out, size, "the server's certificate is signed by an unknown authority");
    break;
  default:
    snprintf(out, size, "the server's certificate was not accepted: %s",
             X509_verify_cert_error_string(result));
    break;
  }
}

/* Explains the server's alert about this client. */
static void explain_alert(int alert, bool demanded, bool have_one, char *out, size_t size) {
  switch (alert) {
  case SSL_AD_PROTOCOL_VERSION:
    snprintf(out, size, "the server speaks no version of TLS that is new enough");
    return;
  case SSL_AD_UNRECOGNIZED_NAME:
    snprintf(out, size, "the server does not go by that name");
    return;
  default:
    break;
  }
  if (demanded && !have_one)
    snprintf(out, size, "the server demands a certificate of the client");
  else if (demanded && alert != SSL_AD_HANDSHAKE_FAILURE)
    snprintf(out, size, "the server does not accept the client's certificate: %s",
             SSL_alert_desc_string_long(alert));
  else
    snprintf(out, size, "the server ended the TLS handshake: %s",
             SSL_alert_desc_string_long(alert));
}

void belay__tls_error(const SSL *ssl, const char *name, bool demanded,
                      char out[BELAY__TLS_ERROR_MAX]) {
  const size_t size = BELAY__TLS_ERROR_MAX;
  unsigned long error = ERR_peek_error(); /* the first: later ones are what it led to */
  int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  const char *text = ERR_reason_error_string(error);
  if (reason > SSL_AD_REASON_OFFSET) {
    explain_alert(reason - SSL_AD_REASON_OFFSET, demanded, SSL_get_certificate(ssl) != NULL, out,
                  size);
    return;
  }
  switch (reason) {
  case SSL_R_CERTIFICATE_VERIFY_FAILED:
    explain_certificate(SSL_get_verify_result(ssl), name, out, size);
    break;
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_WRONG_SSL_VERSION:
  case SSL_R_VERSION_TOO_LOW:
  case SSL_R_INAPPROPRIATE_FALLBACK:
    snprintf(out, size, "the server speaks no version of TLS that is new enough");
    break;
  default:
    snprintf(out, size, "the TLS handshake failed: %s",
             text != NULL ? text : "for no known reason");
    break;
  }
}
