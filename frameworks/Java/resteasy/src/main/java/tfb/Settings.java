package tfb;

/** Settings from environment variables: listen address, database, and /fan-out's upstream, which may be null. */
record Settings(String host, int port, String dbHost, int dbPort, String dbName, String dbUser, String dbPassword,
        String upstreamUrl) {

    static Settings fromEnvironment() {
        return new Settings(
                text("HOST", "0.0.0.0"),
                port("PORT", 8080),
                text("DBHOST", "tfb-database"),
                port("DBPORT", 5432),
                text("DBNAME", "hello_world"),
                text("DBUSER", "benchmarkdbuser"),
                text("DBPASS", "benchmarkdbpass"),
                text("UPSTREAM_URL", null));
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
