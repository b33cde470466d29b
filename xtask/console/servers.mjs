// Servers of a script: a receiver of webhooks, and proxies between a browser and a console.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createConnection, createServer as createTcpServer } from 'node:net';
import { mkdirSync } from 'node:fs';
import { FOLDER, order, until, writeFile } from './site.mjs';

/** Closes when the script ends: no server keeps it alive. */
async function listen(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return server.address().port;
}

/** A receiver of webhooks. `answer` and `delay` may be changed at any time; `received` has the bodies. */
export class Receiver {
  status = 200;
  delay = 0;
  reason = '';
  received = [];

  static async open() {
    const receiver = new Receiver();
    const port = await listen(createServer((request, response) => receiver.take(request, response)));
    receiver.url = `http://127.0.0.1:${port}/hook`;
    return receiver;
  }

  async take(request, response) {
    let body = '';
    for await (const piece of request) body += piece;
    const { status, reason } = this;
    setTimeout(() => {
      if (status === 200) this.received.push({ id: request.headers['webhook-id'], body });
      response.writeHead(status, { 'content-type': 'text/plain' }).end(reason);
    }, this.delay);
  }
}

/** Serves one text as HTML, as a page of another origin does. */
export async function strangerPage(html) {
  const port = await listen(createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(html)));
  return `http://127.0.0.1:${port}/`;
}

/** A proxy of bytes before `target` (`HOST:PORT`) that cuts all connections when `cut` is called. */
export class Cutter {
  connections = new Set();

  static async open(target) {
    const cutter = new Cutter();
    const [host, port] = target.split(':');
    const own = await listen(createTcpServer((client) => cutter.join(client, createConnection(Number(port), host))));
    cutter.url = `http://127.0.0.1:${own}`;
    return cutter;
  }

  join(client, server) {
    for (const [one, other] of [[client, server], [server, client]]) {
      this.connections.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.connections.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }

  cut() {
    for (const connection of this.connections) connection.destroy();
  }
}

/** Debian's nginx before `target`, under the prefix `/forebay/`. `cut` ends all streams through it. */
export async function nginx(target) {
  const cutter = await Cutter.open(target);
  const [port] = await order('ports', { count: 1 });
  const folder = `${FOLDER}/nginx`;
  mkdirSync(folder, { recursive: true });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
  const path = writeFile('nginx.conf', `daemon off; master_process off; pid ${folder}/pid; events {}
http {
  access_log off; ${paths.join(' ')}
  server {
    listen 127.0.0.1:${port};
    location /forebay/ {
      proxy_pass ${cutter.url}/;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_buffering off;
    }
  }
}\n`);
  const child = spawn('nginx', ['-e', `${folder}/log`, '-c', path], { stdio: 'ignore' });
  process.on('exit', () => child.kill('SIGKILL'));
  child.unref();
  const url = `http://127.0.0.1:${port}/forebay/`;
  await until('nginx answers', () => fetch(url).then(() => true, () => false), 5000);
  return { url, cut: () => cutter.cut(), stop: () => child.kill('SIGTERM') };
}
