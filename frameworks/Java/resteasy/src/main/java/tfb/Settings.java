package tfb;

/**
 * Settings from environment variables. If not configured, optional strings are null and optional ports are 0. HTTP/2
 * without TLS uses {@code cleartextPort}.
 */
record Settings(String host, int port, String dbHost, int dbPort, String dbName, String dbUser, String dbPassword,
        String upstreamUrl, String dataSet, String folder, int httpsPort, int cleartextPort, String certificate,
        String key) {

    static Settings fromEnvironment() {
        return new Settings(
                text("HOST", "0.0.0.0"),
                port("PORT", 8080),
                text("DBHOST", "tfb-database"),
                port("DBPORT", 5432),
                text("DBNAME", "hello_world"),
                text("DBUSER", "benchmarkdbuser"),
                text("DBPASS", "benchmarkdbpass"),
                text("UPSTREAM_URL", null),
                text("DATASET", null),
                text("STATIC_DIR", null),
                port("HTTPS_PORT", 0),
                port("H2C_PORT", 0),
                text("TLS_CERT", null),
                text("TLS_KEY", null));
    }

    private static String text(String name, String fallback) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? fallback : value;
    }

    private static int port(String name, int fallback) {
        String value = text(name, Integer.toString(fallback));
        if (!value.matches("\\d{1,5}") || Integer.parseInt(value) > 65535) {
            throw new IllegalArgumentException(name + " is not a port: " + value);
        }
        return Integer.parseInt(value);
    }
}
