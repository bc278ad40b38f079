//! The server: a platform, what is offered of it, and what its clients share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::services::{ClientFeature, ClientFeatures, Offers};
use tenon_host::{Caller, Platform};
use tokio::sync::watch;

use crate::changes::{ChangeBroadcast, Subscriptions};
use crate::client::QuestionLimits;
use crate::lock;
use crate::offer::{Offer, Peer, Profile};
use crate::parked::{ParkedCallDirectory, ParkingLimits, ParkingLot};
use crate::protocol::version::Era;
use crate::rates::CallRates;
use crate::request_handler::RequestHandler;
use crate::seal::Sealer;

/// How a server serves. The default is what `tenon serve` does without configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What clients are offered that choose nothing else.
    pub profile: Profile,
    /// Further profiles, by their names.
    pub profiles: BTreeMap<String, Profile>,
    /// The longest message of a client, in bytes.
    pub max_message: usize,
    /// The most requests of one client that are in flight.
    pub max_in_flight: usize,
    /// The most calls of modern clients, and the most questions to legacy ones, that wait for answers.
    pub max_waiting_calls: usize,
    /// How long a call waits for the answer of its client.
    pub max_waiting_time: Duration,
    /// How long requests in flight may take when the server ends.
    pub drain: Duration,
    /// The folder of the project that runs of scripts belong to, where no other server shares the store: they go on only where
    /// they belong to the same one.
    pub project: Option<String>,
}

/// What is left of a profile, by the patterns of the tools that a token is good for.
type ProfilesByTools = HashMap<Vec<String>, Arc<Profile>>;

/// The most profiles that are kept as tokens narrow them.
const MAX_NARROWED_PROFILES: usize = 1000;

/// The most bytes of questions that wait for answers, together.
const MAX_WAITING_BYTES: usize = 4 << 20;

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            profiles: BTreeMap::new(),
            max_message: 16 << 20,
            max_in_flight: 256,
            max_waiting_calls: 256,
            max_waiting_time: Duration::from_secs(600),
            drain: Duration::from_secs(10),
            project: None,
        }
    }
}

impl Settings {
    /// The default, but for what clients are offered that choose nothing else.
    pub fn with_profile(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Whether clients can have the profile of this name.
    pub fn has_profile(&self, name: &str) -> bool {
        name == self.profile.name || self.profiles.contains_key(name)
    }
}

/// Why there is no server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The system has no random numbers, without which nothing can be sealed.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
}

/// Serves a platform to MCP clients. Clones share it.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) platform: Platform,
    pub(crate) settings: Settings,
    pub(crate) offer: Arc<Offer>,
    pub(crate) changes: Arc<ChangeBroadcast>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) parked: Arc<ParkingLot>,
    pub(crate) questions: Arc<QuestionLimits>,
    pub(crate) seal: Sealer,
    rates: Arc<CallRates>,
    default_profile: Arc<Profile>,
    profiles: BTreeMap<String, Arc<Profile>>,
    /// What is left of profiles for tokens that are good for some tools only, by the profiles' names and these tools.
    narrowed: Mutex<HashMap<String, ProfilesByTools>>,
}

impl Server {
    /// A server of this platform. It must be called in a tokio runtime.
    ///
    /// So that clients can be asked for what plugins and MCP servers ask of a user or a model, the platform is built
    /// with [`AllClientFeatures`] as its client features.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new(platform: Platform, settings: Settings) -> Result<Self, ServerError> {
        let seal = Sealer::new().ok_or(ServerError::NoRandomNumbers)?;
        let offer = Arc::new(Offer::new(platform.clone()));
        let (changes, subscriptions) = (Arc::new(ChangeBroadcast::new()), Arc::default());
        changes.follow(&platform, &offer, &subscriptions);
        let parking = ParkingLimits {
            calls: settings.max_waiting_calls,
            bytes: MAX_WAITING_BYTES,
            time: settings.max_waiting_time,
        };
        let profiles = settings.profiles.iter();
        let profiles = profiles.map(|(name, profile)| (name.clone(), Arc::new(profile.clone())));
        Ok(Self(Arc::new(Inner {
            default_profile: Arc::new(settings.profile.clone()),
            profiles: profiles.collect(),
            narrowed: Mutex::default(),
            rates: Arc::default(),
            parked: ParkingLot::new(ParkedCallDirectory::new(platform.store().clone()), parking),
            questions: QuestionLimits::new(settings.max_waiting_calls, settings.max_waiting_time),
            seal,
            platform,
            settings,
            offer,
            changes,
            subscriptions,
        })))
    }

    /// Ends the calls that wait for answers of clients, as at the end of the server: what asks is told that nobody answers,
    /// and a run of a script pauses, where it can. [`serve_http`](Self::serve_http) does so at its end. Where lines are
    /// served, their host does so when it serves no more.
    pub async fn end_waiting_calls(&self) {
        self.0.parked.end().await;
    }
}

/// Waits until the server, or what goes on with a client, ends.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|is_closing| *is_closing).await;
}

impl Inner {
    /// A profile by its name; the default one without a name.
    pub(crate) fn profile(&self, name: Option<&str>) -> Option<Arc<Profile>> {
        match name {
            None => Some(self.default_profile.clone()),
            Some(name) if name == self.default_profile.name => Some(self.default_profile.clone()),
            Some(name) => self.profiles.get(name).cloned(),
        }
    }

    /// What is left of a profile for a token that is good for some tools only. It is the same value each time.
    pub(crate) fn narrowed(&self, profile: &Profile, tools: &[String]) -> Arc<Profile> {
        let mut narrowed = lock(&self.narrowed);
        let known = narrowed.get(&profile.name).and_then(|of_profile| of_profile.get(tools));
        if let Some(known) = known {
            return known.clone();
        }
        if narrowed.values().map(HashMap::len).sum::<usize>() >= MAX_NARROWED_PROFILES {
            narrowed.clear();
        }
        let new = Arc::new(Profile { token_tools: Some(tools.to_vec()), ..profile.clone() });
        narrowed.entry(profile.name.clone()).or_default().insert(tools.to_vec(), new.clone());
        new
    }

    /// What is done for a client.
    pub(crate) fn work(&self, peer: &Peer, era: Era, caller: Caller) -> RequestHandler {
        let caller = Caller {
            principal: peer.name.clone(),
            profile: Some(peer.profile.name.as_str().into()),
            ..caller
        };
        RequestHandler {
            platform: self.platform.clone(),
            offer: self.offer.clone(),
            peer: peer.clone(),
            rates: self.rates.clone(),
            era,
            caller,
            project: self.settings.project.clone(),
            client: None,
        }
    }
}

/// What a platform that is served declares to its MCP servers: everything that a client can do. Each request is answered
/// by the client whose call it is, as far as that client has declared it; what belongs to no call is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllClientFeatures;

impl ClientFeatures for AllClientFeatures {
    fn offers(&self) -> Offers {
        Offers { forms: true, pages: true, sampling: true, roots: true }
    }

    fn remedy(&self, _: ClientFeature) -> String {
        "it was asked for outside of any call of a client".into()
    }
}
