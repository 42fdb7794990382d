package tfb;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** Creates a TLS context from a certificate and its private key in PEM format. */
final class Tls {

    private static final char[] NO_PASSWORD = {};

    private Tls() {}

    /** @param key the path of an elliptic-curve key in PKCS #8 */
    static SSLContext context(String certificate, String key) {
        try {
            KeyStore keys = KeyStore.getInstance("PKCS12");
            keys.load(null, null);
            keys.setKeyEntry("server", key(key), NO_PASSWORD, new Certificate[] {certificate(certificate)});
            KeyManagerFactory managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            managers.init(keys, NO_PASSWORD);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(managers.getKeyManagers(), null, null);
            return context;
        } catch (GeneralSecurityException | IOException failure) {
            throw new IllegalArgumentException("Cannot read the certificate or its key: " + failure, failure);
        }
    }

    private static Certificate certificate(String path) throws GeneralSecurityException, IOException {
        try (InputStream file = Files.newInputStream(Path.of(path))) {
            return CertificateFactory.getInstance("X.509").generateCertificate(file);
        }
    }

    private static PrivateKey key(String path) throws GeneralSecurityException, IOException {
        String base64 = Files.readString(Path.of(path)).replaceAll("-----[A-Z ]+-----|\\s", "");
        return KeyFactory.getInstance("EC").generatePrivate(
                new PKCS8EncodedKeySpec(Base64.getDecoder().decode(base64)));
    }
}
