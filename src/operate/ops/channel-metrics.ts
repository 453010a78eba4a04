// The metrics of channels. No row has a label, because a name of a channel could come from a client.
import { counter, gauge } from './metric-rows.ts';

export const CHANNEL_METRICS = [
  counter(
    'gatefold_channel_published_total',
    'Events that workers have published to channels',
    ({ supervisor }) => supervisor?.channels?.published,
  ),
  counter(
    'gatefold_channel_delivered_total',
    'Events that subscribers have received, each counted once for each subscriber',
    ({ totals }) => totals.channelDelivered,
  ),
  counter(
    'gatefold_channel_too_slow_total',
    'Subscriptions that ended because their subscriber did not keep up',
    ({ totals }) => totals.channelTooSlow,
  ),
  gauge(
    'gatefold_channel_kept_bytes',
    'Bytes of the events that the supervisor keeps for subscribers that reconnect',
    ({ supervisor }) => supervisor?.channels?.keptBytes,
  ),
];
