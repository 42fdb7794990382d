"""Recognises Ruby, PHP and Perl services, and start scripts."""

import re

from harness.extras.gate.stacks.service_folder import ServiceFolder, Stack, has_word

RUBY_ENVIRONMENT = {"RACK_ENV": "production", "APP_ENV": "production"}
RAILS_ENVIRONMENT = {
    "RAILS_ENV": "production",
    "RACK_ENV": "production",
    "RAILS_LOG_TO_STDOUT": "1",
    "RAILS_SERVE_STATIC_FILES": "1",
    "SECRET_KEY_BASE": "only-for-measurements",
}
REQUIRES_SINATRA = re.compile(r"^require [\"']sinatra(?:/base)?[\"']", re.MULTILINE)
MOJOLICIOUS = re.compile(r"\bMojolicious(::Lite|::Commands)?\b")


def detect_ruby(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a Ruby service, or None."""
    gems = folder.text("Gemfile") + folder.text("gems.rb")
    file = folder.first("Gemfile", "gems.rb")
    scripts = [name for name in folder.glob("*.rb") if REQUIRES_SINATRA.search(folder.text(name))]
    if not file and not scripts:
        return None
    install = "bundle config set --local path vendor/bundle && bundle install --quiet" if file else ""
    run = "bundle exec " if file else ""
    if has_word(gems, "rails"):
        lines = [install, "SECRET_KEY_BASE=only-for-measurements RAILS_ENV=production bundle exec rails db:prepare"]
        if "assets" in folder.names or folder.glob("app/assets"):
            lines.append(
                "SECRET_KEY_BASE=only-for-measurements RAILS_ENV=production bundle exec rails assets:precompile"
            )
        start = f"{run}puma -e production -b tcp://127.0.0.1:$PORT"
        health = "/up" if "rails/health#show" in folder.text("config/routes.rb") else ""
        return Stack(name="Rails", file=file, build=" && ".join(lines), start=start, env=RAILS_ENVIRONMENT, path=health)
    has_rackup_file = "config.ru" in folder.names
    if has_rackup_file and (has_word(gems, "puma") or not file):
        start = f"{run}puma -e production -b tcp://127.0.0.1:$PORT"
    elif has_rackup_file and has_word(gems, "falcon"):
        start = f"{run}falcon serve -b http://127.0.0.1:$PORT"
    elif has_rackup_file:
        start = f"{run}rackup -E production -o 127.0.0.1 -p $PORT"
    elif scripts:
        start = f"{run}ruby {scripts[0]} -e production -o 127.0.0.1 -p $PORT"
    else:
        start = f"{run}puma -e production -b tcp://127.0.0.1:$PORT"
    name = "Sinatra" if scripts or has_word(gems, "sinatra") else "Ruby"
    name += " with Puma" if "puma" in start else ""
    return Stack(name=name, file=file or scripts[0], build=install, start=start, env=RUBY_ENVIRONMENT)


def detect_php(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a PHP service, or None. The start command runs PHP's built-in server."""
    index = folder.first("public/index.php", "web/index.php", "index.php")
    if not index:
        return None
    root = index.rpartition("/")[0] or "."
    composer = folder.text("composer.json")
    install = "composer install --no-dev --optimize-autoloader --no-interaction --quiet" if composer else ""
    env = {"APP_ENV": "production", "APP_DEBUG": "false", "PHP_CLI_SERVER_WORKERS": "2"}
    if "symfony/framework-bundle" in composer:
        env["APP_ENV"] = "prod"
    return Stack(
        name="Laravel" if "artisan" in folder.names else "PHP",
        file="composer.json" if composer else index,
        build=install,
        start=f"php -d opcache.enable_cli=1 -d display_errors=0 -S 127.0.0.1:$PORT -t {root} {index}",
        env=env,
        advice=("php -S is PHP's development server: if production uses php-fpm and nginx, start them instead",),
    )


def detect_shell(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a folder with a start script, or None."""
    file = folder.first("start.sh", "run.sh", "serve.sh", "server.sh", "bin/start")
    return Stack(name="a start script", file=file, start=f"./{file}", is_guess=True) if file else None


def detect_perl(folder: ServiceFolder) -> Stack | None:
    """Return the stack of a Perl service that uses Mojolicious or PSGI, or None."""
    install = "cpanm --quiet --notest --local-lib-contained local --installdeps ." if "cpanfile" in folder.names else ""
    library = "PERL5LIB=$PWD/local/lib/perl5:$PERL5LIB " if install else ""
    for file in (*folder.glob("*.pl"), *folder.glob("script/*")):
        if MOJOLICIOUS.search(folder.text(file)):
            start = f"{library}perl {file} prefork -m production -l http://127.0.0.1:$PORT"
            return Stack(name="Mojolicious", file=file, build=install, start=start, env={"MOJO_MODE": "production"})
    for file in (*folder.glob("*.psgi"), *folder.glob("bin/*.psgi")):
        start = f"{library}plackup -E deployment -s Starman --host 127.0.0.1 --port $PORT {file}"
        return Stack(name="PSGI", file=file, build=install, start=start, env={"PLACK_ENV": "deployment"})
    return None
