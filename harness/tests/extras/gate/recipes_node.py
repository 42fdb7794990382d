"""Services on Node.js for tests of ``init``."""

import json

from harness.tests.extras.gate.recipe import Recipe

PRODUCTION = {"NODE_ENV": "production"}
LOOP = "let sum = 0; for (let i = 0; i < 1e6; i++) sum += i;"
WWW = """#!/usr/bin/env node
var app = require('../app');
var http = require('http');
var port = parseInt(process.env.PORT || '3000', 10);
app.set('port', port);
var server = http.createServer(app);
server.listen(port);
"""
EXPRESS_APP = """var express = require('express');
var path = require('path');
var indexRouter = require('./routes/index');
var app = express();
app.use(express.json());
app.use(express.static(path.join(__dirname, 'public')));
app.use('/', indexRouter);
module.exports = app;
"""
EXPRESS_ROUTE = """var express = require('express');
var router = express.Router();

/* GET home page. */
router.get('/', function(req, res, next) {
  res.json({ title: 'Express' });
});
module.exports = router;
"""
FASTIFY_APP = """'use strict'
const path = require('node:path')
const AutoLoad = require('@fastify/autoload')

module.exports = async function (fastify, opts) {
  fastify.register(AutoLoad, { dir: path.join(__dirname, 'routes'), options: Object.assign({}, opts) })
}
module.exports.options = {}
"""
FASTIFY_ROUTE = """'use strict'
module.exports = async function (fastify, opts) {
  fastify.get('/', async function (request, reply) {
    return { root: true }
  })
}
"""
NEST_MODULE = """import { Module } from '@nestjs/common';
import { AppController } from './app.controller';
import { AppService } from './app.service';

@Module({ imports: [], controllers: [AppController], providers: [AppService] })
export class AppModule {}
"""
NEST_MAIN = """import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(process.env.PORT ?? 3000);
}
bootstrap();
"""
NEST_CONTROLLER = """import { Controller, Get } from '@nestjs/common';
import { AppService } from './app.service';

@Controller('cats')
export class AppController {
  constructor(private readonly appService: AppService) {}

  @Get()
  getHello(): string {
    return this.appService.getHello();
  }
}
"""
NEST_SERVICE = """import { Injectable } from '@nestjs/common';

@Injectable()
export class AppService {
  getHello(): string {
    return 'Hello World!';
  }
}
"""
NEST_TYPESCRIPT = {
    "compilerOptions": {
        "module": "commonjs",
        "emitDecoratorMetadata": True,
        "experimentalDecorators": True,
        "target": "ES2022",
        "outDir": "./dist",
        "skipLibCheck": True,
    },
    "include": ["src"],
}
NEXT_LAYOUT = """export default function RootLayout({ children }: { children: React.ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
"""
NEXT_ROUTE = """export const dynamic = 'force-dynamic';

export async function GET() {
  return Response.json({ hello: 'world' });
}
"""
NEXT_TYPESCRIPT = {
    "compilerOptions": {
        "target": "ES2017",
        "lib": ["dom", "dom.iterable", "esnext"],
        "strict": True,
        "noEmit": True,
        "esModuleInterop": True,
        "module": "esnext",
        "moduleResolution": "bundler",
        "isolatedModules": True,
        "skipLibCheck": True,
        "jsx": "preserve",
        "plugins": [{"name": "next"}],
    },
    "include": ["next-env.d.ts", "**/*.ts", "**/*.tsx", ".next/types/**/*.ts"],
    "exclude": ["node_modules"],
}


def package(name: str, scripts: dict[str, str], dependencies: dict[str, str], **more: object) -> str:
    """Return the text of a package.json."""
    return json.dumps({"name": name, "private": True, "scripts": scripts, "dependencies": dependencies, **more})


EXPRESS = Recipe(
    stack="Express",
    files={
        "package.json": package("shop", {"start": "node ./bin/www"}, {"express": "5.1.0"}),
        ".gitignore": "node_modules\n",
        "bin/www": WWW,
        "app.js": EXPRESS_APP,
        "routes/index.js": EXPRESS_ROUTE,
        "public/style.css": "body { margin: 0 }\n",
    },
    slow_file="routes/index.js",
    slow=("  res.json", f"  {LOOP}\n  res.json"),
    path="/",
    build="npm install --include=dev",
    start="node ./bin/www",
    env=PRODUCTION,
    needs=("npm",),
)
FASTIFY = Recipe(
    stack="Fastify",
    files={
        "package.json": package(
            "shop",
            {"start": "fastify start -l info app.js", "dev": "fastify start -w -l info -P app.js"},
            {"fastify": "5.6.1", "fastify-plugin": "5.1.0", "@fastify/autoload": "6.3.1", "fastify-cli": "7.4.1"},
            main="app.js",
        ),
        ".gitignore": "node_modules\n",
        "app.js": FASTIFY_APP,
        "routes/root.js": FASTIFY_ROUTE,
    },
    slow_file="routes/root.js",
    slow=("    return", f"    {LOOP}\n    return"),
    path="/",
    start="node_modules/.bin/fastify start -l info app.js",
    env=PRODUCTION,
    needs=("npm",),
)
NEST = Recipe(
    stack="NestJS",
    files={
        "package.json": package(
            "shop",
            {
                "build": "nest build",
                "start": "nest start",
                "start:dev": "nest start --watch",
                "start:prod": "node dist/main",
            },
            {
                "@nestjs/common": "11.1.6",
                "@nestjs/core": "11.1.6",
                "@nestjs/platform-express": "11.1.6",
                "reflect-metadata": "0.2.2",
                "rxjs": "7.8.2",
            },
            devDependencies={"@nestjs/cli": "11.0.10", "@types/node": "22.18.0", "typescript": "5.9.2"},
        ),
        ".gitignore": "/dist\n/node_modules\n",
        "nest-cli.json": '{"collection": "@nestjs/schematics", "sourceRoot": "src"}\n',
        "tsconfig.json": json.dumps(NEST_TYPESCRIPT),
        "tsconfig.build.json": '{"extends": "./tsconfig.json", "exclude": ["node_modules", "test", "dist"]}\n',
        "src/main.ts": NEST_MAIN,
        "src/app.module.ts": NEST_MODULE,
        "src/app.controller.ts": NEST_CONTROLLER,
        "src/app.service.ts": NEST_SERVICE,
    },
    slow_file="src/app.service.ts",
    slow=("    return", f"    {LOOP}\n    return"),
    path="/cats",
    build="npm run build",
    start="node dist/main",
    env=PRODUCTION,
    needs=("npm",),
)
NEXT = Recipe(
    stack="Next.js",
    files={
        "package.json": package(
            "shop",
            {"dev": "next dev", "build": "next build", "start": "next start"},
            {"next": "15.5.4", "react": "19.1.1", "react-dom": "19.1.1"},
            devDependencies={
                "@types/node": "22.18.0",
                "@types/react": "19.1.12",
                "@types/react-dom": "19.1.9",
                "typescript": "5.9.2",
            },
        ),
        ".gitignore": "/node_modules\n/.next/\nnext-env.d.ts\n",
        "tsconfig.json": json.dumps(NEXT_TYPESCRIPT),
        "next.config.ts": "export default {};\n",
        "app/layout.tsx": NEXT_LAYOUT,
        "app/page.tsx": "export default function Home() {\n  return <main>Hello</main>;\n}\n",
        "app/api/hello/route.ts": NEXT_ROUTE,
    },
    slow_file="app/api/hello/route.ts",
    slow=("  return", f"  {LOOP}\n  if (sum < 0) throw new Error();\n  return"),
    path="/api/hello",
    build="npm run build",
    start="node_modules/.bin/next start",
    env=PRODUCTION,
    needs=("npm",),
)
NODE_RECIPES = (EXPRESS, FASTIFY, NEST, NEXT)
