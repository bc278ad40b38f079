//! Answers of language models that come in pieces.

use futures::channel::mpsc;
use futures::{Stream, StreamExt};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tenon_config::limits::MAX_DURATION;
use tenon_config::secret::{Redactor, StreamFormat, StreamRedactor};
use tenon_types::{
    CallContext, Completion, CompletionRequest, CompletionSummary, Delta, Error, Part,
    ToolCallArguments, ToolCallStart,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};
use wasmtime::StoreContextMut;
use wasmtime::component::{
    Accessor, FutureConsumer, FutureReader, Lift, Source, StreamConsumer, StreamReader,
    StreamResult,
};

use super::shared::{InstanceLease, JobHandle};
use super::{CallIds, GuestHandle, attributed};
use crate::call::mask::MaskSecrets;
use crate::call::{Failure, within};
use crate::capability::HostState;
use crate::capability::bindings::convert::Convert;
use crate::runtime::UseToken;

/// How many pieces wait for a reader before the writer has to.
const BUFFERED_DELTAS: usize = 16;

/// An answer that comes in pieces: a [`Stream`] of deltas, and then [`CompletionStream::finish`].
/// Dropping it tells the provider to stop.
pub struct CompletionStream {
    deltas: mpsc::Receiver<Delta>,
    end: SummarySource,
    timeout: Option<StreamTimeout>,
    /// Keeps secrets out of it, where there are any.
    redactor: Option<Box<DeltaRedactor>>,
    /// Who gives it.
    plugin: Option<Arc<str>>,
    /// Keeps the plugin, though it be replaced meanwhile.
    _uses: Option<UseToken>,
    /// The call that is over when the answer is.
    call: Option<Box<dyn StreamedCall>>,
}

/// The call that an answer in pieces is for.
pub(crate) trait StreamedCall: Send + Sync {
    /// A piece of so many bytes was passed on.
    fn wrote(&mut self, bytes: u64);

    /// The answer is over. Gives what its reader is told.
    fn end_of_stream(
        self: Box<Self>,
        summary: Result<CompletionSummary, Failure>,
    ) -> Result<CompletionSummary, Failure>;
}

/// The most tool calls of one answer.
const MAX_TOOL_CALLS: usize = 1_000;

/// Masks secrets in the pieces of an answer. Text, reasoning and the arguments of each tool call are
/// texts of their own, however they are mixed.
struct DeltaRedactor {
    redactor: Arc<Redactor>,
    text: StreamRedactor,
    reasoning: StreamRedactor,
    arguments: BTreeMap<u32, StreamRedactor>,
    /// Pieces that may be passed on.
    ready: VecDeque<Delta>,
    ended: bool,
    /// It has more tool calls than are followed.
    flooded: bool,
}

impl DeltaRedactor {
    fn new(redactor: Arc<Redactor>) -> Box<Self> {
        Box::new(Self {
            text: StreamRedactor::new(redactor.clone(), StreamFormat::Plain),
            reasoning: StreamRedactor::new(redactor.clone(), StreamFormat::Plain),
            redactor,
            arguments: BTreeMap::new(),
            ready: VecDeque::new(),
            ended: false,
            flooded: false,
        })
    }

    /// Takes a piece. Gives whether the answer may go on.
    fn push(&mut self, delta: Delta) -> bool {
        let masked = match delta {
            Delta::Text(text) => Delta::Text(self.text.push(&text)),
            Delta::Reasoning(text) => Delta::Reasoning(self.reasoning.push(&text)),
            Delta::ToolCallStart(mut start) => {
                self.redactor.redact(&mut start.id);
                self.redactor.redact(&mut start.name);
                Delta::ToolCallStart(start)
            }
            Delta::ToolCallArguments(ToolCallArguments { index, fragment }) => {
                let is_known = self.arguments.contains_key(&index);
                if !is_known && self.arguments.len() >= MAX_TOOL_CALLS {
                    self.flooded = true;
                    return false;
                }
                let redactor = &self.redactor;
                let stream = self
                    .arguments
                    .entry(index)
                    .or_insert_with(|| StreamRedactor::new(redactor.clone(), StreamFormat::Json));
                let fragment = stream.push(&fragment);
                Delta::ToolCallArguments(ToolCallArguments { index, fragment })
            }
        };
        self.add(masked);
        true
    }

    /// No more comes: nothing is held back any longer.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let (text, reasoning) = (self.text.end(), self.reasoning.end());
        self.add(Delta::Reasoning(reasoning));
        self.add(Delta::Text(text));
        for (index, mut stream) in std::mem::take(&mut self.arguments) {
            let fragment = stream.end();
            self.add(Delta::ToolCallArguments(ToolCallArguments { index, fragment }));
        }
    }

    fn add(&mut self, delta: Delta) {
        if !text_of(&delta).is_empty() || matches!(delta, Delta::ToolCallStart(_)) {
            self.ready.push_back(delta);
        }
    }
}

/// What a piece adds to a text.
fn text_of(delta: &Delta) -> &str {
    match delta {
        Delta::Text(text) | Delta::Reasoning(text) => text,
        Delta::ToolCallArguments(arguments) => &arguments.fragment,
        Delta::ToolCallStart(start) => &start.name,
    }
}

impl MaskSecrets for CompletionStream {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        if !redactor.is_idle() {
            self.redactor = Some(DeltaRedactor::new(redactor.clone()));
        }
    }
}

/// How long the reader waits for each piece.
struct StreamTimeout {
    most: Duration,
    /// When the whole answer must be there, and how long that is from its beginning.
    end: Instant,
    total: Duration,
    sleep: Pin<Box<Sleep>>,
    lost: bool,
}

/// How the end of an answer is learnt.
enum SummarySource {
    /// It was there at once.
    Known(CompletionSummary),
    /// The provider writes it after the last piece.
    Awaited {
        summary: oneshot::Receiver<Result<CompletionSummary, Error>>,
        call: JobHandle<Result<(), Error>>,
    },
}

impl CompletionStream {
    /// Returns the next piece, or `None` when the answer is over; [`Self::finish`] says how it ended.
    pub async fn next(&mut self) -> Option<Delta> {
        StreamExt::next(self).await
    }

    /// Reads what is left of the answer and says how it ended.
    ///
    /// # Errors
    ///
    /// The provider's own error, or why it could not finish.
    pub async fn finish(mut self) -> Result<CompletionSummary, Failure> {
        while self.next().await.is_some() {}
        let masking = self.redactor.take();
        let is_flooded = masking.as_ref().is_some_and(|masking| masking.flooded);
        let redactor = masking.map(|masking| masking.redactor).unwrap_or_default();
        let call = self.call.take();
        let mut summary = match is_flooded {
            true => Err(Failure::Contract(format!("it has more than {MAX_TOOL_CALLS} tool calls"))),
            false => self.summary().await,
        };
        summary.mask(&redactor);
        match call {
            Some(call) => call.end_of_stream(summary),
            None => summary,
        }
    }

    async fn summary(self) -> Result<CompletionSummary, Failure> {
        let timeout = self.timeout.map(|timeout| (timeout.most, timeout.lost));
        if let Some((most, true)) = timeout {
            return Err(Failure::Deadline(most));
        }
        match self.end {
            SummarySource::Known(summary) => Ok(summary),
            SummarySource::Awaited { summary, call } => {
                let most = timeout.map_or(Duration::MAX, |(most, _)| most);
                let (summary, ended) = within(most, async {
                    let summary = summary.await;
                    // Learns of a trap that cut the answer off.
                    Ok((summary, call.wait().await))
                })
                .await?;
                ended?.map_err(Failure::Answered)?;
                match summary {
                    Ok(summary) => summary.map_err(Failure::Answered),
                    Err(_) => Err(Failure::Contract("the answer ended without a summary".into())),
                }
            }
        }
    }
}

impl CompletionStream {
    /// Ends the stream when a piece takes longer than `most` to come, or all of them together
    /// longer than `total`.
    pub(crate) fn with_timeout(mut self, most: Duration, total: Duration) -> Self {
        let end = Instant::now() + total.min(MAX_DURATION);
        let sleep = Box::pin(sleep(most.min(total)));
        self.timeout = Some(StreamTimeout { most, end, total, sleep, lost: false });
        self
    }

    /// The plugin that gives the answer, where a platform had it begun.
    pub fn plugin(&self) -> Option<&Arc<str>> {
        self.plugin.as_ref()
    }

    /// Names the plugin, and keeps it for as long as the stream is there.
    pub(crate) fn of(self, plugin: Arc<str>, uses: UseToken) -> Self {
        Self { plugin: Some(plugin), _uses: Some(uses), ..self }
    }

    /// Has a call end when the answer does.
    pub(crate) fn ending(self, call: Box<dyn StreamedCall>) -> Self {
        Self { call: Some(call), ..self }
    }

    fn begun(deltas: mpsc::Receiver<Delta>, end: SummarySource) -> Self {
        let (timeout, redactor, plugin, call) = (None, None, None, None);
        Self { deltas, end, timeout, redactor, plugin, _uses: None, call }
    }
}

impl CompletionStream {
    /// The next piece as the plugin gave it, or its end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delta>> {
        let Self { deltas, timeout, .. } = self;
        if timeout.as_ref().is_some_and(|timeout| timeout.lost) {
            return Poll::Ready(None);
        }
        let polled = deltas.poll_next_unpin(cx);
        let Some(timeout) = timeout else { return polled };
        match polled {
            Poll::Ready(_) => {
                let now = Instant::now();
                if now >= timeout.end {
                    timeout.most = timeout.total;
                    timeout.lost = true;
                    return Poll::Ready(None);
                }
                timeout.sleep.as_mut().reset((now + timeout.most).min(timeout.end));
            }
            Poll::Pending if timeout.sleep.as_mut().poll(cx).is_ready() => {
                timeout.lost = true;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        polled
    }
}

impl Stream for CompletionStream {
    type Item = Delta;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delta>> {
        let delta = loop {
            let Some(redactor) = &mut self.redactor else { break ready!(self.poll_piece(cx)) };
            if let Some(delta) = redactor.ready.pop_front() {
                break Some(delta);
            }
            if redactor.ended {
                break None;
            }
            let piece = ready!(self.poll_piece(cx));
            let Some(redactor) = &mut self.redactor else { break piece };
            let goes_on = piece.is_some_and(|piece| redactor.push(piece));
            if !goes_on {
                redactor.end();
            }
        };
        if let (Some(call), Some(delta)) = (&mut self.call, &delta) {
            call.wrote(text_of(delta).len() as u64);
        }
        Poll::Ready(delta)
    }
}

impl From<Completion> for CompletionStream {
    /// The whole answer as one piece for each of its parts. What only a whole answer can say
    /// (media, for instance) is not in the deltas.
    fn from(completion: Completion) -> Self {
        let mut pieces = Vec::new();
        let mut calls = 0;
        for part in completion.parts {
            match part {
                Part::Text(text) => pieces.push(Delta::Text(text)),
                Part::Reasoning(reasoning) => pieces.push(Delta::Reasoning(reasoning.text)),
                Part::ToolCall(call) => {
                    let index = calls;
                    calls += 1;
                    let start = ToolCallStart { index, id: call.id, name: call.name };
                    let arguments = ToolCallArguments { index, fragment: call.arguments };
                    pieces.push(Delta::ToolCallStart(start));
                    pieces.push(Delta::ToolCallArguments(arguments));
                }
                Part::Image(_) | Part::Audio(_) | Part::ToolCallResult(_) | Part::Other(_) => {}
            }
        }
        let (mut sender, deltas) = mpsc::channel(pieces.len());
        for piece in pieces {
            sender.try_send(piece).expect("the channel was made to hold them all");
        }
        Self::begun(deltas, SummarySource::Known(completion.summary))
    }
}

/// Asks an instance for an answer, and connects its stream to a reader.
pub(super) async fn open(
    lease: InstanceLease,
    request: CompletionRequest,
    context: CallContext,
) -> Result<CompletionStream, Failure> {
    let (pieces, deltas) = mpsc::channel(BUFFERED_DELTAS);
    let (end, summary) = oneshot::channel();
    let (started, begun) = oneshot::channel();
    let call = CallIds::of(&context);
    let answer = AnswerWriter { pieces, end, started };
    let work = async move |guest: Arc<GuestHandle>| {
        let GuestHandle { accessor, exports, .. } = &*guest;
        exports.stream(accessor, request, context, answer).await
    };
    let call = lease.submit(attributed(Some(call.id), work));
    match begun.await {
        Ok(()) => {
            let end = SummarySource::Awaited { summary, call };
            Ok(CompletionStream::begun(deltas, end))
        }
        Err(_) => match call.wait().await? {
            Err(error) => Err(Failure::Answered(error)),
            Ok(()) => Err(Failure::Host("the answer never began".into())),
        },
    }
}

/// Where an instance writes an answer in pieces.
pub(crate) struct AnswerWriter {
    pieces: mpsc::Sender<Delta>,
    end: oneshot::Sender<Result<CompletionSummary, Error>>,
    started: oneshot::Sender<()>,
}

impl AnswerWriter {
    /// Takes pieces and a summary out of a guest. It is over when the answer is.
    pub(super) async fn write<D, S>(
        self,
        accessor: &Accessor<HostState>,
        deltas: StreamReader<D>,
        summary: FutureReader<S>,
    ) -> wasmtime::Result<()>
    where
        D: Convert<Delta> + Lift + Send + Sync + 'static,
        S: Convert<Result<CompletionSummary, Error>> + Lift + Send + Sync + 'static,
    {
        let Self { pieces, end, started } = self;
        let (finished, ended) = oneshot::channel();
        accessor.with(|mut store| {
            deltas.pipe(&mut store, DeltaConsumer(pieces, PhantomData))?;
            let end = Some(end);
            summary.pipe(&mut store, SummaryConsumer { end, _finished: finished, of: PhantomData })
        })?;
        let _ = started.send(());
        // The call is not over before the answer is.
        let _ = ended.await;
        Ok(())
    }
}

/// Takes the pieces of an answer out of the guest, no faster than they are read.
struct DeltaConsumer<D>(mpsc::Sender<Delta>, PhantomData<fn() -> D>);

impl<D: Convert<Delta> + Lift + 'static> StreamConsumer<HostState> for DeltaConsumer<D> {
    type Item = D;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        store: StoreContextMut<'_, HostState>,
        mut source: Source<'_, D>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        match self.0.poll_ready(cx) {
            Poll::Pending if finish => Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Ready(Ok(())) => {
                let mut piece = None;
                source.read(store, &mut piece)?;
                if let Some(piece) = piece
                    && self.0.start_send(piece.convert()).is_err()
                {
                    return Poll::Ready(Ok(StreamResult::Dropped));
                }
                Poll::Ready(Ok(StreamResult::Completed))
            }
        }
    }
}

/// Takes the summary out of the guest. Going away, it says that the answer is over.
struct SummaryConsumer<S> {
    end: Option<oneshot::Sender<Result<CompletionSummary, Error>>>,
    _finished: oneshot::Sender<()>,
    of: PhantomData<fn() -> S>,
}

impl<S> FutureConsumer<HostState> for SummaryConsumer<S>
where
    S: Convert<Result<CompletionSummary, Error>> + Lift + 'static,
{
    type Item = S;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        store: StoreContextMut<'_, HostState>,
        mut source: Source<'_, S>,
        _: bool,
    ) -> Poll<wasmtime::Result<()>> {
        let mut summary = None;
        source.read(store, &mut summary)?;
        if let (Some(summary), Some(end)) = (summary, self.end.take()) {
            let _ = end.send(summary.convert());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::discriminant;
    use tenon_config::secret::SecretValues;
    use tenon_types::{StopReason, TokenUsage};

    const SECRET: &str = "hunter/22\u{e4}";

    fn redactor() -> Arc<Redactor> {
        let mut secrets = SecretValues::default();
        secrets.add("A_TOKEN", SECRET);
        Arc::new(Redactor::new(&secrets))
    }

    fn summary() -> CompletionSummary {
        let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
        let extra = Some(format!("{{\"said\":\"{SECRET}\"}}"));
        let (model, stop_reason) = (SECRET.into(), StopReason::Other(SECRET.into()));
        CompletionSummary { model, stop_reason, usage, extra }
    }

    /// The pieces as they come out of a stream, joined by their kinds, and its summary.
    async fn masked(pieces: Vec<Delta>, redactor: &Arc<Redactor>) -> (String, String) {
        let (mut sender, deltas) = mpsc::channel(pieces.len());
        pieces.into_iter().for_each(|piece| sender.try_send(piece).expect("there is room"));
        drop(sender);
        let mut stream = CompletionStream::begun(deltas, SummarySource::Known(summary()));
        stream.mask(redactor);
        let mut joined: BTreeMap<String, String> = BTreeMap::new();
        while let Some(delta) = stream.next().await {
            let kind = match &delta {
                Delta::Text(_) => "text".to_string(),
                Delta::Reasoning(_) => "reasoning".to_string(),
                Delta::ToolCallStart(start) => format!("start {} {}", start.index, start.id),
                Delta::ToolCallArguments(arguments) => format!("arguments {}", arguments.index),
            };
            joined.entry(kind).or_default().push_str(text_of(&delta));
        }
        let summary = stream.finish().await.expect("it ends well");
        (format!("{joined:?}"), format!("{summary:?}"))
    }

    #[tokio::test]
    async fn a_secret_is_masked_wherever_an_answer_is_cut() {
        let redactor = redactor();
        let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let text = |piece: &str, _: u32| Delta::Text(piece.into());
        let reasoning = |piece: &str, _: u32| Delta::Reasoning(piece.into());
        let arguments = |piece: &str, index: u32| {
            Delta::ToolCallArguments(ToolCallArguments { index, fragment: piece.into() })
        };
        type Making<'a> = &'a dyn Fn(&str, u32) -> Delta;
        let rows: [(&str, Making<'_>); 7] = [
            (SECRET, &text),
            (SECRET, &reasoning),
            (SECRET, &arguments),
            ("hunter\\/22\u{e4}", &arguments),
            (&escaped, &arguments),
            (&escaped, &text),
            (&escaped, &reasoning),
        ];
        for (spelled, delta) in rows {
            let whole = format!("{{\"it\":\"is {spelled}!\"}}");
            for (cut, _) in whole.char_indices() {
                // Others come in between.
                let others = [text("t", 0), reasoning("r", 0), arguments("9", 7)];
                let own = delta("", 0);
                // More of the same text would not be in between.
                let between = others.into_iter().filter(|other| {
                    let is_arguments = matches!(other, Delta::ToolCallArguments(_));
                    is_arguments || discriminant(other) != discriminant(&own)
                });
                let mut pieces = vec![delta(&whole[..cut], 0)];
                pieces.extend(between);
                pieces.push(delta(&whole[cut..], 0));
                let (said, summary) = masked(pieces, &redactor).await;
                assert!(said.contains("is [redacted]!"), "{cut}: {said}");
                assert!(!said.contains("22") && !said.contains("\\u00"), "{cut}: {said}");
                assert_eq!(summary.matches("[redacted]").count(), 3, "{summary}");
                assert!(!summary.contains("22"), "{summary}");
            }
        }
        let start = ToolCallStart { index: 0, id: SECRET.into(), name: SECRET.into() };
        let (said, _) = masked(vec![Delta::ToolCallStart(start)], &redactor).await;
        assert_eq!(said.matches("[redacted]").count(), 2, "{said}");
    }

    #[tokio::test]
    async fn a_stream_without_secrets_is_passed_on_as_it_is() {
        let mut stream =
            CompletionStream::begun(mpsc::channel(1).1, SummarySource::Known(summary()));
        stream.mask(&Arc::default());
        assert!(stream.redactor.is_none());
    }

    #[tokio::test]
    async fn an_answer_without_end_of_tool_calls_fails() {
        let (mut sender, deltas) = mpsc::channel(MAX_TOOL_CALLS + 2);
        for index in 0..=MAX_TOOL_CALLS as u32 {
            let piece = ToolCallArguments { index, fragment: "{".into() };
            sender.try_send(Delta::ToolCallArguments(piece)).expect("there is room");
        }
        drop(sender);
        let mut stream = CompletionStream::begun(deltas, SummarySource::Known(summary()));
        stream.mask(&redactor());
        assert!(matches!(stream.finish().await, Err(Failure::Contract(_))));
    }
}
