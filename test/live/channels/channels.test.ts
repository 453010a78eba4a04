// Tests channels without processes: workers and the machine exchange their messages in this process.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Subscription } from '../../../src/api/controller/subscription.ts';
import { type Channel, channel } from '../../../src/api/controller.ts';
import { EVENTS_BEGIN, processChannels } from '../../../src/base/channel-hub.ts';
import { bytesOf, EventLog } from '../../../src/live/channels/event-log.ts';
import { ChannelHub } from '../../../src/live/channels/hub.ts';
import {
  type ChannelWorker,
  type FromMachine,
  MachineChannels,
  type ToMachine,
} from '../../../src/live/channels/machine.ts';

const MIB = 1024 * 1024;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await turn();
};

interface TestWorker extends ChannelWorker {
  readonly hub: ChannelHub;
  readonly sent: ToMachine[];
  readonly received: FromMachine[];
  /** Whether the worker reads its messages. One that does not get them later, by `read`. */
  isReading: boolean;
  read(): void;
  subscribe(after?: string, options?: { keep?: number; name?: string; signal?: AbortSignal }): Subscription;
  publish(data: unknown, name?: string, keep?: number): Promise<string>;
}

function createWorker(machine: MachineChannels): TestWorker {
  const unread: (() => void)[] = [];
  const worker: TestWorker = {
    sent: [],
    received: [],
    isReading: true,
    hub: new ChannelHub((message) => {
      worker.sent.push(message);
      machine.receive(worker, structuredClone(message));
    }),
    send(message, _socket, onSent) {
      const take = () => {
        worker.received.push(message);
        worker.hub.receive(structuredClone(message));
        onSent?.();
      };
      if (worker.isReading) take();
      else unread.push(take);
    },
    read() {
      worker.isReading = true;
      for (const take of unread.splice(0)) take();
    },
    subscribe: (after, { keep = 100, name = 'a', signal } = {}) =>
      new Subscription(worker.hub.open(name, keep), { after, signal }),
    publish: (data, name = 'a', keep = 100) => worker.hub.publish(name, keep, data),
  };
  return worker;
}

async function take(subscription: AsyncIterator<unknown>, count: number): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let i = 0; i < count; i++) {
    const { value } = await subscription.next();
    items.push(value as Record<string, unknown>);
  }
  return items;
}
const dataOf = (items: readonly Record<string, unknown>[]) => items.map(({ data }) => data);
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** Publishes in workers of their own, because of what a worker may publish in a second. */
async function publishAll(
  machine: MachineChannels,
  list: readonly unknown[],
  keep = 100,
  name = 'a',
): Promise<string[]> {
  const ids: string[] = [];
  let worker = createWorker(machine);
  for (const data of list) {
    if (worker.sent.length === 500 || (String(data).length > 10_000 && worker.sent.length === 15))
      worker = createWorker(machine);
    ids.push(await worker.publish(data, name, keep));
  }
  await turn();
  return ids;
}

describe('a channel', () => {
  it('gives every subscriber of every worker all events in one order, those of the publisher too', async () => {
    const machine = new MachineChannels();
    const workers = [1, 2, 3].map(() => createWorker(machine));
    const subscriptions = workers.flatMap((worker) => [worker.subscribe(), worker.subscribe()]);
    const ids = await Promise.all(numbers(1, 60).map((n) => workers[n % 3]?.publish({ n })));
    const seen = await Promise.all(subscriptions.map((subscription) => take(subscription, 60)));
    for (const items of seen) {
      assert.deepEqual(items.map(({ id }) => id).sort(), ids.sort());
      assert.deepEqual(dataOf(items), dataOf(seen[0] ?? []));
    }
    for (const { sent } of workers) assert.equal(sent.filter(({ kind }) => kind === 'channel-open').length, 1);
  });

  it('gives calls of next that wait at once an event each, in their order', async () => {
    const worker = createWorker(new MachineChannels());
    const subscription = worker.subscribe();
    const calls = Promise.all([subscription.next(), subscription.next(), subscription.next()]);
    await turns(3);
    const waiting = [subscription.next(), subscription.next()];
    for (let n = 1; n <= 5; n++) await worker.publish(n);
    const results = [...(await calls), ...(await Promise.all(waiting))];
    assert.deepEqual(
      results.map(({ value }) => value?.data),
      [1, 2, 3, 4, 5],
    );
  });

  it('gives a subscriber what came after its id, once and in order, in any worker', async () => {
    const machine = new MachineChannels();
    const ids = await publishAll(machine, numbers(1, 50));
    const [old, fresh] = [createWorker(machine), createWorker(machine)];
    const subscriptions = [old, fresh, old].map((worker) => worker.subscribe(ids[29]));
    for (const subscription of subscriptions) assert.deepEqual(dataOf(await take(subscription, 20)), numbers(31, 50));
    await old.publish('live');
    // Its first event is the next one, also while the worker has not received the event that it has published.
    const late = old.subscribe();
    await old.publish('later');
    for (const subscription of subscriptions) assert.deepEqual(dataOf(await take(subscription, 1)), ['live']);
    assert.deepEqual(dataOf(await take(late, 1)), ['later']);
  });

  it('begins with reset for an id that is too old, malformed, of another channel or of another start', async () => {
    const machine = new MachineChannels();
    const ids = await publishAll(machine, numbers(1, 150));
    const foreign = (await publishAll(machine, numbers(1, 120), 100, 'b'))[119];
    const restarted = (await publishAll(new MachineChannels(), numbers(1, 120)))[119];
    const newest = ids[149] ?? '';
    const epoch = newest.split('.')[0] ?? '';
    const worker = createWorker(machine);
    const unknown = ['', '0', 'x.1', `${epoch}.`, `${epoch}.-1`, `${epoch}.1e2`, `${epoch}.${'9'.repeat(16)}`];
    for (const after of [...unknown, `${epoch}.251`, ids[0], ids[48], foreign, restarted]) {
      const subscription = worker.subscribe(after);
      // A client that is cut off before its reset must get it again.
      assert.equal(await subscription[EVENTS_BEGIN](), '');
      assert.deepEqual(await take(subscription, 1), [{ id: newest, event: 'reset', data: null }], String(after));
      await subscription.return();
    }
    // 100 events are kept, so all after number 50 are known.
    assert.deepEqual(dataOf(await take(worker.subscribe(ids[49]), 100)), numbers(51, 150));
    assert.deepEqual(dataOf(await take(worker.subscribe(ids[148]), 1)), [150]);
    // Another worker may have sent as many further events as are kept.
    assert.equal(await worker.subscribe(`${epoch}.250`)[EVENTS_BEGIN](), `id: ${epoch}.250\n`);
    // A client that got a reset reconnects with its id, and gets no other reset.
    const again = worker.subscribe(newest);
    assert.equal(await again[EVENTS_BEGIN](), `id: ${newest}\n`);
    assert.equal(await worker.subscribe()[EVENTS_BEGIN](), `id: ${newest}\n`);
    const next = again.next();
    await worker.publish('next');
    assert.equal(((await next).value as { data: unknown }).data, 'next');
    assert.equal(worker.sent.filter(({ kind }) => kind === 'channel-open').length, 1);
  });

  it('gives data as deep as a publisher can send, and counts the memory of text that is not ASCII', async () => {
    const machine = new MachineChannels();
    const worker = createWorker(machine);
    const subscription = worker.subscribe();
    const next = subscription.next();
    const depth = 3500;
    await worker.publish(JSON.parse('['.repeat(depth) + ']'.repeat(depth)));
    let data = ((await next).value as { data: unknown }).data;
    let levels = 0;
    for (; Array.isArray(data); data = data[0], levels++) assert.ok(Object.isFrozen(data));
    assert.equal(levels, depth);
    const before = machine.keptBytes;
    await worker.publish('😀'.repeat(10_000));
    assert.ok(machine.keptBytes - before >= 40_000);
  });

  it('waits for the events of an id that another worker has sent before this one has them', async () => {
    const machine = new MachineChannels();
    const [first, late] = [createWorker(machine), createWorker(machine)];
    await take(late.subscribe('x'), 1);
    late.isReading = false;
    const seen = first.subscribe();
    for (const n of numbers(1, 3)) await first.publish(n);
    const [, , { id } = { id: '' }] = await take(seen, 3);
    const subscription = late.subscribe(String(id));
    const next = subscription.next();
    await first.publish(4);
    await turn();
    late.read();
    assert.equal(((await next).value as { data: unknown }).data, 4);
  });

  it('keeps the newest events of `keep`, and ends a subscriber that is further behind', async () => {
    const machine = new MachineChannels();
    const worker = createWorker(machine);
    const slow = worker.subscribe();
    const fast = worker.subscribe();
    assert.equal((await Promise.all([slow.next(), publishAll(machine, [0])]))[0].value?.data, 0);
    const behind = processChannels().counts.tooSlow;
    for (let n = 1; n <= 101; n++) {
      await publishAll(machine, [n]);
      await take(fast, n === 1 ? 2 : 1);
    }
    await assert.rejects(slow.next(), {
      code: 'SUBSCRIBER_TOO_SLOW',
      message: 'The subscriber is more than 100 events of a behind',
    });
    assert.equal(processChannels().counts.tooSlow, behind + 1);
    assert.deepEqual(await slow.next(), { done: true, value: undefined });
    await publishAll(machine, [102]);
    assert.deepEqual(dataOf(await take(fast, 1)), [102]);
  });

  it('ends the subscribers of a worker that did not read, also those that wait, and keeps few bytes for it', async () => {
    const machine = new MachineChannels();
    const stuck = createWorker(machine);
    const waiting = stuck.subscribe();
    const next = waiting.next();
    await turns(2);
    stuck.isReading = false;
    const text = 'x'.repeat(60_000);
    let unread = 0;
    const { send } = stuck;
    stuck.send = (message, socket, onSent) => {
      if (message.kind === 'channel-events') unread += message.events.join('').length;
      send(message, socket, onSent);
    };
    const ids: string[] = [];
    for (let i = 0; i < 30; i++) {
      const list = Array.from({ length: 10 }, (_, n) => `${10 * i + n} ${text}`);
      ids.push(...(await publishAll(machine, list)));
      await turns(20);
    }
    assert.ok(unread > 4 * MIB && unread < 4.2 * MIB, String(unread));
    assert.ok(machine.keptBytes < 6.1 * MIB);
    stuck.read();
    await turns(200);
    assert.equal(((await next).value as { data: unknown }).data, `0 ${text}`);
    await assert.rejects(take(waiting, 300), { code: 'SUBSCRIBER_TOO_SLOW' });
    // The events behind the gap have their own numbers.
    const [item] = await take(stuck.subscribe(ids[250]), 1);
    assert.deepEqual([item?.id, item?.data], [ids[251], `251 ${text}`]);
  });

  it('sends 64 KiB in one turn and 4 MiB in all to a worker that does not read, and no byte more', async () => {
    const machine = new MachineChannels();
    const worker = createWorker(machine);
    void worker.subscribe().next();
    await turns(2);
    worker.isReading = false;
    const lengths: number[] = [];
    const { send } = worker;
    worker.send = (message, socket, onSent) => {
      if (message.kind === 'channel-events') lengths.push(message.events.join('').length);
      send(message, socket, onSent);
    };
    await publishAll(
      machine,
      Array.from({ length: 80 }, () => 'x'.repeat(65_534)),
    );
    await turns(100);
    assert.deepEqual(lengths, Array(64).fill(65_536));
  });

  it('sends at most 64 KiB to a worker in one turn, and lets channels take turns', async () => {
    const machine = new MachineChannels();
    for (const name of ['a', 'b'])
      await publishAll(
        machine,
        Array.from({ length: 40 }, () => 'x'.repeat(20_000)),
        100,
        name,
      );
    const worker = createWorker(machine);
    const subscriptions = ['a', 'b'].map((name) => worker.subscribe('x', { name }));
    await Promise.all(subscriptions.map((subscription) => take(subscription, 1)));
    const lengths: number[] = [];
    for (let last = 0; lengths.length < 60; ) {
      await turn();
      const all = worker.received.flatMap((message) => (message.kind === 'channel-events' ? message.events : []));
      lengths.push(all.join('').length - last);
      last = all.join('').length;
    }
    assert.ok(Math.max(...lengths) < 90_000, String(lengths));
    assert.equal(
      lengths.reduce((a, b) => a + b),
      80 * 20_002,
    );
    const order = worker.received.flatMap((message) => (message.kind === 'channel-events' ? [message.channel] : []));
    assert.ok(order.indexOf('b') < 3, order.join());
  });

  it('keeps 16 MiB for all channels, and drops events of the largest', async () => {
    const machine = new MachineChannels();
    const small = await publishAll(machine, numbers(1, 100), 100, 'small');
    await publishAll(
      machine,
      Array.from({ length: 400 }, () => 'x'.repeat(60_000)),
      1000,
      'large',
    );
    assert.ok(machine.keptBytes <= 16 * MIB && machine.keptBytes > 15.9 * MIB, String(machine.keptBytes));
    const worker = createWorker(machine);
    assert.deepEqual(dataOf(await take(worker.subscribe(small[0], { name: 'small' }), 99)), numbers(2, 100));
    const large = worker.subscribe(`${machine}`, { name: 'large', keep: 1000 });
    assert.equal((await take(large, 1))[0]?.event, 'reset');
  });

  it('refuses a worker 500 events or 1 MiB in a second, and more data than 64 KiB', async () => {
    const machine = new MachineChannels();
    const [many, large] = [createWorker(machine), createWorker(machine)];
    const busy = { code: 'CHANNEL_BUSY', status: 503, headers: { 'Retry-After': '1' } };
    // A slow machine may need more than a second for 500 events, and then begins a new second.
    const begun = performance.now();
    const refused = async (publish: () => Promise<unknown>, limit: number) => {
      let published = 0;
      await assert.rejects(async () => {
        for (;;) {
          await publish();
          published++;
        }
      }, busy);
      if (performance.now() - begun < 1000) assert.equal(published, limit);
      else assert.ok(published >= limit);
    };
    await refused(() => many.publish(1), 500);
    const data = 'x'.repeat(65_534);
    let published = 0;
    await refused(() => large.publish(published++ < 16 ? data : 1), 16);
    await assert.rejects(large.publish(`${data}x`), {
      message: /^the data of an event has 65537 bytes of JSON, the limit is 65536$/,
    });
    await assert.rejects(large.publish('é'.repeat(32_768)), /65538 bytes/);
  });

  it('refuses events that the supervisor does not confirm', async () => {
    const hub = new ChannelHub(() => {});
    const clock = performance.now;
    let time = 0;
    performance.now = () => time;
    try {
      for (let i = 0; i < 1000; i++) {
        if (i === 500) time = 1000;
        hub.publish('a', 100, 1).catch(() => {});
      }
      time = 2000;
      await assert.rejects(hub.publish('a', 100, 1), { code: 'CHANNEL_BUSY' });
    } finally {
      performance.now = clock;
    }
  });

  it('forgets confirmed events', async () => {
    const clock = performance.now;
    let time = 0;
    performance.now = () => time;
    try {
      const worker = createWorker(new MachineChannels());
      for (let i = 0; i < 1001; i++) {
        time += 10;
        await worker.publish(i);
      }
    } finally {
      performance.now = clock;
    }
  });

  it('begins a subscription when the supervisor has answered, and takes the latest `keep`', async () => {
    const machine = new MachineChannels();
    const ids = await publishAll(machine, numbers(1, 100));
    ids.push(...(await publishAll(machine, numbers(101, 150), 200)));
    const worker = createWorker(machine);
    worker.isReading = false;
    const next = worker.subscribe().next();
    await turns(2);
    await publishAll(machine, [151], 200);
    worker.read();
    assert.equal(((await next).value as { data: unknown }).data, 151);
    const other = createWorker(machine);
    const early = other.subscribe(ids[4], { keep: 200 });
    assert.deepEqual(dataOf(await take(early, 2)), [6, 7]);
  });

  it('refuses data that no client could read', async () => {
    const worker = createWorker(new MachineChannels());
    await assert.rejects(worker.publish(undefined), /has a undefined, which has no JSON form/);
    await assert.rejects(worker.publish({ list: new Map() }), /has an object of class Map at \/list/);
    await assert.rejects(worker.publish(1n), TypeError);
    assert.equal(worker.sent.length, 0);
  });

  it('shares frozen data, which a copy of the item keeps', async () => {
    const machine = new MachineChannels();
    const worker = createWorker(machine);
    const [one, two] = [worker.subscribe(), worker.subscribe()];
    await worker.publish({ list: [{ n: 1 }] });
    const [[first = {}], [second = {}]] = await Promise.all([take(one, 1), take(two, 1)]);
    const data = first.data as { list: { n: number }[] };
    assert.equal(data, second.data);
    assert.throws(() => data.list.push({ n: 2 }), TypeError);
    assert.throws(() => Object.assign(data.list[0] as object, { n: 2 }), TypeError);
    const copy = { ...first, event: 'task' };
    assert.deepEqual(copy, { id: first.id, data: { list: [{ n: 1 }] }, event: 'task' });
    assert.deepEqual(Object.getOwnPropertySymbols(copy), []);
  });

  it('ends a subscription by its signal and by return, also one that waits and one that has not begun', async () => {
    const machine = new MachineChannels();
    const worker = createWorker(machine);
    const end = { done: true, value: undefined };
    const controller = new AbortController();
    const subscription = worker.subscribe(undefined, { signal: controller.signal });
    const next = subscription.next();
    await turn();
    controller.abort();
    assert.deepEqual(await next, end);
    assert.deepEqual(await subscription.next(), end);
    assert.deepEqual(await worker.subscribe(undefined, { signal: AbortSignal.abort() }).next(), end);
    const returned = worker.subscribe();
    const waiting = returned.next();
    assert.deepEqual(await returned.return(), end);
    assert.deepEqual(await waiting, end);
    assert.equal((await worker.hub.open('a', 100)).channel.waiting.size, 0);
  });

  it('forgets a worker that has ended', async () => {
    const machine = new MachineChannels();
    const [worker, other] = [createWorker(machine), createWorker(machine)];
    await take(worker.subscribe('x'), 1);
    await turns(2);
    machine.gone(worker);
    await other.publish(1);
    await turns(2);
    assert.ok(!worker.received.some(({ kind }) => kind === 'channel-events'));
    assert.equal(machine.published, 1);
  });
});

describe('EventLog', () => {
  it('counts the memory of a text, and keeps as many events and bytes as are allowed', () => {
    const [first, second] = [new EventLog<number>('a', 20), new EventLog<number>('b', 2)];
    const all = new Map([first, second].map((log) => [log.name, log]));
    second.append(1, 'ab', all);
    assert.deepEqual([second.bytes, bytesOf(all)], [202, 202]);
    second.append(2, 'é', all);
    assert.equal(second.bytes, 202 + 202);
    second.append(3, '', all);
    assert.deepEqual(
      [second.first, second.last, second.get(1), second.get(2), second.bytes],
      [2, 3, undefined, 2, 402],
    );
    second.restart(7);
    assert.deepEqual([second.first, second.last, second.bytes], [7, 6, 0]);
    // Sixteen events of a mebibyte each are all that a process keeps.
    for (let number = 1; number <= 16; number++) first.append(number, 'x'.repeat(MIB - 200), all);
    assert.deepEqual([first.first, first.last, bytesOf(all)], [1, 16, 16 * MIB]);
    second.append(7, '', all);
    assert.deepEqual([first.first, second.first, second.last], [2, 7, 7]);
  });
});

describe('channel()', () => {
  const refused = (name: unknown, options?: { keep?: number }) => () => channel(name as string, options);

  it('takes closed names and options', () => {
    for (const name of ['', '1a', 'a b', 'a/b', 'é', 'a'.repeat(65), undefined])
      assert.throws(refused(name), /a name has up to 64 letters/);
    for (const keep of [0, 99, 100_001, 1.5, Number.NaN]) assert.throws(refused('b', { keep }), /keep must be/);
    channel('kept', { keep: 500 });
    channel('kept', { keep: 500 });
    assert.throws(refused('kept'), /keep is 500 elsewhere: export the channel once/);
    const { names } = processChannels();
    const before = names.size;
    for (let i = before; i < 100; i++) channel(`n${i}`);
    assert.throws(refused('more'), /there are 100 channels already: a name must not come from a request/);
    channel('kept', { keep: 500 });
    for (const name of [...names.keys()].slice(before)) names.delete(name);
  });

  it('is an error to use where nothing delivers', async () => {
    const place = processChannels();
    const { load } = place;
    delete place.load;
    try {
      const lonely: Channel<number> = channel('lonely');
      await assert.rejects(lonely.publish(1), /a channel works in a service/);
      await assert.rejects(lonely.subscribe().next(), /a channel works in a service/);
      assert.deepEqual(await lonely.subscribe().return?.(), { done: true, value: undefined });
    } finally {
      if (load !== undefined) place.load = load;
    }
  });
});

describe('the machine', () => {
  it('keeps the order of messages, and reports the first channel once', async () => {
    const firsts: string[] = [];
    const channels = new MachineChannels((channel) => void firsts.push(channel));
    const received: FromMachine[] = [];
    const worker: ChannelWorker = { send: (message) => void received.push(message) };
    const receive = (message: ToMachine) => channels.receive(worker, message);
    receive({ kind: 'channel-open', channel: 'a', keep: 100 });
    receive({ kind: 'channel-publish', channel: 'a', keep: 100, json: '1', publish: 1 });
    receive({ kind: 'channel-publish', channel: 'b', keep: 100, json: '2', publish: 2 });
    await turns(2);
    assert.deepEqual(
      received.map((message) => (message.kind === 'channel-events' ? message.events : message.kind)),
      ['channel-opened', 'channel-published', 'channel-published', ['1']],
    );
    assert.deepEqual(firsts, ['a']);
  });
});
